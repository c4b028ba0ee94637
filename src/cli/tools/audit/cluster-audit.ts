import type { ToolAuditRequest, ToolAuditState } from '../../../gateway-api/user-api.ts';
import { TemperError } from '../../../lib/errors.ts';
import { ulids } from '../../../lib/ids.ts';
import { isJsonObject, type Json, textAt } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import type { AuditedRun } from '../../../tool-audit/report.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { auditText } from './audit-text.ts';
import { openCluster } from '../../cluster/cluster.ts';
import { GatewayUserClient } from '../../cluster/gateway-user-client.ts';
import type { ClusterOptions } from '../../cluster/options.ts';
import { withRetry } from '../../cluster/retry-budget.ts';

export interface ClusterToolAuditOptions extends ClusterOptions {
  /** The name that models use, a digest, or the name of the object. */
  tool: string;
  message: string[];
  agent?: string;
  maxTokens: number;
  output: 'text' | 'json';
}

const WAIT_SECONDS = 20;
const RETRY_SECONDS = 60;

/** Has fresh agents work on each task with the tool and without it, in a verifier pod, and prints the comparison. Exit 1: the audit failed. */
export async function clusterToolAudit(options: ClusterToolAuditOptions, io: CliIo): Promise<number> {
  const { agent, message: tasks, maxTokens, tool } = options;
  if (agent === undefined) throw new TemperError('TEMPER_USAGE', 'name the agent that has the tool with --agent');
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const path = `agents/${encodeURIComponent(agent)}/tool-audits`;
  const body: ToolAuditRequest = { tool, tasks, maxTokens };
  const call = { method: 'POST', path, body, idempotencyKey: ulids.next('cli') } as const;
  let state = stateIn(await withRetry(RETRY_SECONDS, io, () => gateway.call(call)));
  const name = printable(state.tool, 63);
  io.error(
    `note: ${tasks.length} tasks, each with ${name} and without it, use at most about ${maxTokens} tokens, charged to agent/${printable(agent, 63)} in ${cluster.location}\n`,
  );
  let shown = reportProgress(state, 0, io);
  while (!hasEnded(state)) {
    const query = `wait=${WAIT_SECONDS}&runs=${state.runs.length}`;
    const next = { method: 'GET', path: `${path}/${encodeURIComponent(state.digest)}?${query}` } as const;
    state = stateIn(await withRetry(RETRY_SECONDS, io, () => gateway.call(next)));
    shown = reportProgress(state, shown, io);
  }
  return printEnd(state, options.output, io);
}

function printEnd(audit: ToolAuditState, output: 'text' | 'json', io: CliIo): number {
  const { state, tool, digest, agent, model = '', endedAt: time = '', tasks, problem = '' } = audit;
  if (state === 'Failed') {
    if (output === 'json') writeJsonLine(io, { tool, digest, state, problem });
    else io.error(`the audit of ${printable(tool, 63)} failed: ${printable(problem, 500)}\n`);
    return EXIT.refused;
  }
  const evidence = audit.evidence ?? 'NeverCalled';
  if (output === 'json') writeJsonLine(io, { tool, digest, time, agent, model, evidence, tasks });
  else io.out(auditText(tool, { evidence, tasks }, 'the status of its EmergentTool'));
  return EXIT.ok;
}

/** One line for each session that has ended. Returns how many were shown. */
function reportProgress({ runs, sessions, state }: ToolAuditState, shown: number, io: CliIo): number {
  if (state === 'Requested' && shown === 0 && runs.length === 0) io.error('waiting for a verifier pod\n');
  for (const [index, run] of runs.entries()) if (index >= shown) io.error(progressLine(run, index, sessions));
  return runs.length;
}

function progressLine({ outcome, uses, turns, tokens }: AuditedRun, index: number, sessions: number): string {
  const variant = index % 2 === 0 ? 'with' : 'without';
  const task = Math.floor(index / 2) + 1;
  return `session ${index + 1} of ${sessions}: task ${task} ${variant} the tool: ${printable(outcome, 64)}, ${uses} uses, ${turns} turns, ${tokens} tokens\n`;
}

function hasEnded({ state }: ToolAuditState): boolean {
  return state === 'Completed' || state === 'Failed';
}

function stateIn(response: Json): ToolAuditState {
  const isState =
    isJsonObject(response) &&
    textAt(response, ['digest']) !== '' &&
    textAt(response, ['state']) !== '' &&
    Array.isArray(response.runs) &&
    Array.isArray(response.tasks);
  if (isState) return response as unknown as ToolAuditState;
  throw new TemperError('TEMPER_GATEWAY_UNREACHABLE', 'the response of the gateway is not the state of an audit');
}
