import type { PeerAccount } from '../../../a2a/callers.ts';
import { sha256 } from '../../../lib/canonical.ts';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { readPrivateConfig } from '../../input/private-config.ts';
import type { CliIo } from '../../io.ts';

/** In the configuration folder of the user: `NAMESPACE/SERVICEACCOUNT` of each caller to its token. */
export const CALLERS_FILE = 'a2a-callers.yaml';
const MAX_CALLERS = 1_000;
const ACCOUNT = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;
const TOKEN = /^[A-Za-z0-9._~+/=-]{32,4096}$/;

/** The callers by the digest of their token, so that a comparison of digests says nothing about a token. */
export class LocalCallers {
  readonly #accounts: ReadonlyMap<string, PeerAccount>;

  constructor(accounts: ReadonlyMap<string, PeerAccount>) {
    this.#accounts = accounts;
  }

  get size(): number {
    return this.#accounts.size;
  }

  withToken(token: string): PeerAccount | undefined {
    return this.#accounts.get(sha256(token));
  }
}

/** No callers without the file. Throws TEMPER_MANIFEST_INVALID for a file that others can read, and for an entry that is no caller. */
export async function readLocalCallers(io: CliIo): Promise<LocalCallers> {
  const { file, value } = await readPrivateConfig(CALLERS_FILE, 'the file of callers over A2A', io, {
    hasSecrets: true,
  });
  if (value === undefined || value === null) return new LocalCallers(new Map());
  const entries = typeof value === 'object' && !Array.isArray(value) ? Object.entries(value) : undefined;
  if (entries === undefined || entries.length > MAX_CALLERS)
    throw invalid(file, `it must map NAMESPACE/SERVICEACCOUNT to a token, at most ${MAX_CALLERS}`);
  const accounts = new Map(entries.map(([name, token]) => entryOf(file, name, token)));
  if (accounts.size < entries.length) throw invalid(file, 'two callers have the same token; give each its own');
  return new LocalCallers(accounts);
}

function entryOf(file: string, name: string, token: unknown): [string, PeerAccount] {
  const shown = printable(name, 200);
  if (!ACCOUNT.test(name)) throw invalid(file, `"${shown}" is not NAMESPACE/SERVICEACCOUNT`);
  // The value may be a secret with a typing error, so the message does not have it.
  if (typeof token !== 'string' || !TOKEN.test(token))
    throw invalid(
      file,
      `the token of "${shown}" must have at least 32 letters, digits or ._~+/=-; openssl rand -hex 32 prints one`,
    );
  const [namespace = '', account = ''] = name.split('/');
  return [sha256(token), { namespace, account }];
}

function invalid(file: string, reason: string): TemperError {
  return new TemperError('TEMPER_MANIFEST_INVALID', `${file}: ${reason}`);
}
