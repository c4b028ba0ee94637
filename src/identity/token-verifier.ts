import { errors, type JWTPayload, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { entries } from '../lib/caches/lru-entries.ts';
import { sha256 } from '../lib/canonical.ts';
import type { Clock } from '../lib/clock.ts';
import type { JsonObject } from '../lib/json.ts';
import type { ClusterKeys } from './cluster-keys.ts';
import { invalidToken, subjectOf, type TokenSubject } from './token-claims.ts';

/** The signature algorithms of API servers. No symmetric algorithm, and never `none`. */
const ALGORITHMS = ['RS256', 'ES256', 'ES384', 'ES512'];
const MAX_TOKEN_LENGTH = 8_192;
/** The tolerated clock skew between API server and gateway. */
const MAX_SKEW_SECONDS = 5;
const CACHE_SIZE = 20_000;

interface Verified {
  subject: TokenSubject;
  /** Milliseconds since 1970. */
  until: number;
  keys: number;
}

/** Verifies ServiceAccount tokens offline, without a TokenReview, and caches the results. */
export class TokenVerifier {
  readonly #keys: ClusterKeys;
  readonly #clock: Clock;
  readonly #verified = new LRUCache<string, Verified>(entries(CACHE_SIZE));

  constructor(keys: ClusterKeys, clock: Clock) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Throws TEMPER_TOKEN_INVALID or TEMPER_TOKEN_AUDIENCE; TEMPER_OVERLOADED while the cluster's keys are not available. */
  async verify(token: string): Promise<TokenSubject> {
    if (token.length > MAX_TOKEN_LENGTH) throw invalidToken();
    // Must come first: it refreshes old keys, also for cached tokens.
    const issuer = await this.#keys.issuer();
    const known = this.#known(token);
    if (known !== undefined) return known.subject;
    const claims = await this.#check(token, issuer, this.#clock.now());
    const subject = subjectOf(claims as JsonObject);
    this.#verified.set(sha256(token), { subject, until: Number(claims.exp) * 1_000, keys: this.#keys.version });
    return subject;
  }

  /** Whether the result for the token is cached and still holds. */
  isVerified(token: string): boolean {
    return token.length <= MAX_TOKEN_LENGTH && this.#known(token) !== undefined;
  }

  #known(token: string): Verified | undefined {
    const known = this.#verified.get(sha256(token));
    const holds = known?.keys === this.#keys.version && known.until > this.#clock.now().getTime();
    return holds ? known : undefined;
  }

  async #check(token: string, issuer: string, currentDate: Date): Promise<JWTPayload> {
    try {
      const { payload } = await jwtVerify(token, this.#keys.getKey, {
        issuer,
        algorithms: ALGORITHMS,
        currentDate,
        clockTolerance: MAX_SKEW_SECONDS,
        requiredClaims: ['aud', 'exp', 'iat', 'sub'],
      });
      return payload;
    } catch (error) {
      if (error instanceof errors.JOSEError) throw invalidToken(error);
      throw error;
    }
  }
}
