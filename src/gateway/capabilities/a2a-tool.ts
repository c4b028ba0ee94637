import type { PeerTool } from '../../a2a/client/peer-client.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import type { CallingMessage } from '../brokered/port.ts';
import type { OAuthTokens } from './oauth-tokens.ts';
import { type ServerEndpoint, ServerRequests } from './server-requests.ts';

export type A2aTool = PeerTool & ServerEndpoint;

interface A2aToolDeps {
  readonly clock: Clock;
  readonly tokens: OAuthTokens;
}

/** Calls the tool for the message of a delivery. Throws what `askPeer` throws, and the errors of egress. */
export async function callA2aTool(
  tool: A2aTool,
  input: JsonObject,
  delivery: CallingMessage,
  { clock, tokens }: A2aToolDeps,
  op: CallOptions,
): Promise<Json> {
  // The client is large, so a gateway loads it for the first call.
  const { askPeer } = await import('../../a2a/client/ask-peer.ts');
  await using requests = new ServerRequests(tool, delivery, tokens);
  return await askPeer(tool, input, { clock, requests }, op);
}
