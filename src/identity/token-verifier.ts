import { errors, type JWTPayload, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { sha256 } from '../lib/canonical.ts';
import type { Clock } from '../lib/clock.ts';
import type { JsonObject } from '../lib/json.ts';
import type { ClusterKeys } from './cluster-keys.ts';
import { invalidToken, subjectOf, type TokenSubject } from './token-claims.ts';

/** What API servers sign with. Nothing symmetric, and never `none`. */
const ALGORITHMS = ['RS256', 'ES256', 'ES384', 'ES512'];
const LONGEST_TOKEN = 8_192;
/** How far the clocks of API server and gateway may be apart. */
const SKEW_SECONDS = 5;
const REMEMBERED = 20_000;

interface Verified {
  subject: TokenSubject;
  /** Milliseconds since 1970. */
  until: number;
  keys: number;
}

/** Says what tokens of the cluster are good for, without asking the API server about each. */
export class TokenVerifier {
  readonly #keys: ClusterKeys;
  readonly #clock: Clock;
  readonly #verified = new LRUCache<string, Verified>({ max: REMEMBERED });

  constructor(keys: ClusterKeys, clock: Clock) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Throws TEMPER_TOKEN_INVALID or TEMPER_TOKEN_AUDIENCE; TEMPER_OVERLOADED while the cluster's keys are not known. */
  async verify(token: string): Promise<TokenSubject> {
    if (token.length > LONGEST_TOKEN) throw invalidToken();
    // Asked for first: this is where keys that grew old are noticed, for remembered tokens too.
    const issuer = await this.#keys.issuer();
    const name = sha256(token);
    const known = this.#verified.get(name);
    const now = this.#clock.now();
    if (known !== undefined && known.keys === this.#keys.version && known.until > now.getTime()) return known.subject;
    const claims = await this.#check(token, issuer, now);
    const subject = subjectOf(claims as JsonObject);
    this.#verified.set(name, { subject, until: Number(claims.exp) * 1_000, keys: this.#keys.version });
    return subject;
  }

  async #check(token: string, issuer: string, currentDate: Date): Promise<JWTPayload> {
    try {
      const { payload } = await jwtVerify(token, this.#keys.find, {
        issuer,
        algorithms: ALGORITHMS,
        currentDate,
        clockTolerance: SKEW_SECONDS,
        requiredClaims: ['aud', 'exp', 'iat', 'sub'],
      });
      return payload;
    } catch (error) {
      if (error instanceof errors.JOSEError) throw invalidToken(error);
      throw error;
    }
  }
}
