import { ulids } from '../../../lib/ids.ts';
import { textAt } from '../../../lib/json.ts';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { openCluster } from '../cluster.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import type { ClusterOptions } from '../options.ts';

interface ReactivateOptions extends ClusterOptions {
  /** The name that models use, or a digest. */
  tool: string;
  agent?: string;
  reason: string;
  output: 'text' | 'json';
}

/** Has the operator verify a deactivated tool of an agent again. Does not wait for its tests. */
export async function reactivate(options: ReactivateOptions, io: CliIo): Promise<number> {
  const { agent, tool, reason } = options;
  if (agent === undefined) throw new TemperError('TEMPER_USAGE', 'name the agent that lost the tool with --agent');
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const path = `agents/${encodeURIComponent(agent)}/reactivations`;
  const idempotencyKey = ulids.next('cli');
  const receipt = await gateway.call({ method: 'POST', path, body: { tool, reason }, idempotencyKey });
  if (options.output === 'json') writeJsonLine(io, receipt);
  else {
    const name = printable(textAt(receipt, ['tool']), 63);
    const next = `temper describe agent ${printable(agent, 63)} shows the result`;
    io.out(`${name} of ${printable(agent, 63)} is verified again in ${cluster.location}; ${next}\n`);
  }
  return EXIT.ok;
}
