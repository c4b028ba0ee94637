import type { TrustReport } from '../../../gateway-api/user-api.ts';
import { printable } from '../../../lib/printable.ts';
import { textAt } from '../../../lib/json.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { explanationText } from '../../trust/explanation-text.ts';
import { type RateTarget, rateTarget } from '../../trust/rate-target.ts';
import { openCluster } from '../cluster.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import type { ClusterOptions } from '../options.ts';

interface TrustOptions extends ClusterOptions {
  agent: string;
  output: 'text' | 'json';
}

/** Prints the level of an agent, its score, what is missing for the next level, and what would lower it. */
export async function explainTrust(options: TrustOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const found = await gateway.call({ method: 'GET', path: `agents/${encodeURIComponent(options.agent)}/trust` });
  if (options.output === 'json') writeJsonLine(io, found);
  else {
    const report = found as unknown as TrustReport;
    io.out(explanationText(report.agent, report.policy, report));
  }
  return EXIT.ok;
}

/** Rates the task of a message, or the latest task of a session. */
export async function rate(options: TrustOptions & RateTarget, io: CliIo): Promise<number> {
  const body = rateTarget(options);
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const path = `agents/${encodeURIComponent(options.agent)}/ratings`;
  const receipt = await gateway.call({ method: 'POST', path, body });
  if (options.output === 'json') writeJsonLine(io, receipt);
  else {
    const message = printable(textAt(receipt, ['message']), 128);
    io.out(`message/${message} of ${printable(options.agent, 63)} rated ${body.rating} of 10 in ${cluster.location}\n`);
  }
  return EXIT.ok;
}
