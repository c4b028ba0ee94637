import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import type { JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { explainTrust } from '../../policy/trust/explain.ts';
import { type LocalAgent, localTasks, rateTask } from '../../standalone/levels/local-tasks.ts';
import { localTrustInput } from '../../standalone/levels/local-trust.ts';
import { privateFiles } from '../../standalone/trust/private-folder.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { explanationText } from './explanation-text.ts';
import { type RateTarget, rateTarget } from './rate-target.ts';
import { notFound } from '../state/state-records.ts';
import { stateFolder } from '../state/state-folder.ts';

interface StateTrustOptions {
  agent: string;
  state: string;
  output: 'text' | 'json';
}

/** Explains the level of an agent of a state folder, as the next run would evaluate it. */
export async function stateTrust(options: StateTrustOptions, io: CliIo): Promise<number> {
  const records = fileRecordStore(await stateFolder(io, options.state));
  const { agent, policy, own } = await storedAgent(records, options.agent);
  const input = { records, agent, policy, namespace: own.namespace, now: systemClock.now() };
  const explanation = explainTrust(await localTrustInput(input));
  const report = { agent: own.name, policy: policy.metadata.name, ...explanation };
  if (options.output === 'json') writeJsonLine(io, report as unknown as JsonObject);
  else io.out(explanationText(report.agent, report.policy, explanation));
  return EXIT.ok;
}

/** Rates the task with this id, or the latest task of a session. */
export async function stateRate(options: StateTrustOptions & RateTarget, io: CliIo): Promise<number> {
  const { rating, category, message, session } = rateTarget(options);
  const folder = await stateFolder(io, options.state);
  // A rating in a folder that others may write to would not be this user's.
  privateFiles(folder);
  const records = fileRecordStore(folder);
  const { own } = await storedAgent(records, options.agent);
  const tasks = await localTasks(records, own);
  const task = tasks.findLast((one) => one.id === message || one.session === session);
  if (task === undefined) {
    const target = printable(options.target, 128);
    throw new TemperError(
      'TEMPER_NOT_FOUND',
      `agent "${own.name}" has no ended task with the id or session "${target}"; temper sessions lists its sessions`,
    );
  }
  await rateTask(records, own, task.id, { rating, ...(category === undefined ? {} : { category }) });
  const done = { message: task.id, session: task.session, outcome: task.outcome, rating };
  if (options.output === 'json') writeJsonLine(io, done);
  else
    io.out(
      `message/${printable(task.id, 128)} of ${own.name} rated ${rating} of 10; it counts when the next run starts\n`,
    );
  return EXIT.ok;
}

/** The manifests of the last run of the agent. */
async function storedAgent(
  records: RecordStore,
  name: string,
): Promise<{ agent: Agent; policy: TrustPolicy; own: LocalAgent }> {
  const agents = await records.list('agents');
  const agent = agents.find((record) => record.name === name)?.value as unknown as Agent | undefined;
  if (agent === undefined) throw notFound('agents', name, agents);
  const policies = await records.list('trustpolicies');
  const policyName = agent.spec.trustPolicyRef.name;
  const policy = policies.find((record) => record.name === policyName)?.value as unknown as TrustPolicy | undefined;
  if (policy === undefined) throw notFound('trustpolicies', policyName, policies);
  return { agent, policy, own: { name, namespace: agent.metadata.namespace ?? 'default' } };
}
