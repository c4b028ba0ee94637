import type { SessionCloseReceipt } from '../../../gateway-api/user-api.ts';
import { ulids } from '../../../lib/ids.ts';
import { TemperError } from '../../../lib/errors.ts';
import { type CliIo, EXIT } from '../../io.ts';
import { closedSession } from '../../sessions/closed-session.ts';
import { openCluster } from '../cluster.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import type { ClusterOptions } from '../options.ts';

interface CloseSessionOptions extends ClusterOptions {
  session: string;
  agent?: string;
  endWork?: boolean;
  output: 'text' | 'json';
}

/** Closes a session of an agent permanently. */
export async function closeSession(options: CloseSessionOptions, io: CliIo): Promise<number> {
  const { agent, session, endWork } = options;
  if (agent === undefined) throw new TemperError('TEMPER_USAGE', 'name the agent of the session with --agent');
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const query = endWork === true ? '?endWork=true' : '';
  const path = `agents/${encodeURIComponent(agent)}/sessions/${encodeURIComponent(session)}${query}`;
  const found = await gateway.call({ method: 'DELETE', path, idempotencyKey: ulids.next('cli') });
  closedSession(found as unknown as SessionCloseReceipt, options, io);
  return EXIT.ok;
}
