import type { PeerRequests } from '../../a2a/client/peer-client.ts';
import { assertNoEcho, type Credential } from '../../gateway/capabilities/credentials.ts';
import { unauthorized } from '../../gateway/capabilities/server-requests.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import type { SafeBytesFetch } from '../../net/fetch.ts';
import type { TargetRules } from '../../net/targets.ts';

interface PeerRequestsDeps {
  /** Of the tool. */
  name: string;
  url: URL;
  connection: { name: string } | undefined;
  credential: Pick<Credential, 'headers' | 'isIn'>;
  fetch: SafeBytesFetch;
  rules: TargetRules;
  op: CallOptions;
}

/** The requests of one call in a run at an agent elsewhere. */
export function peerRequests(deps: PeerRequestsDeps): PeerRequests {
  const { name, url, connection, credential, fetch, rules, op } = deps;
  return {
    assertNoCredential: (answer) => assertNoEcho(name, answer, credential),
    async fetch(target, { method = 'GET', headers, body, signal }) {
      if (target !== url.href) throw new TemperError('TEMPER_FETCH_DENIED', 'only the URL of the Capability is asked');
      const request = {
        url: target,
        method,
        headers: { ...Object.fromEntries(new Headers(headers)), ...credential.headers },
        ...(typeof body === 'string' ? { body } : {}),
      };
      // A task whose call was cancelled is cancelled with a request of its own.
      const bounded = signal === undefined || signal === null ? op : { ...op, signal, deadline: Infinity };
      const { status, headers: returned, bytes } = await fetch(request, rules, bounded);
      if (status === 401 || (status === 403 && connection !== undefined))
        throw unauthorized(status, { kind: 'a2a', connection });
      const type = { 'content-type': returned['content-type'] ?? 'application/json' };
      return new Response(bytes.length === 0 ? null : new Uint8Array(bytes), { status, headers: type });
    },
  };
}
