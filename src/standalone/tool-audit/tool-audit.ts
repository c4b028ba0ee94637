import type { Engine } from '../../engine/engine.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import { isJsonObject, type Json, type JsonObject, member } from '../../lib/json.ts';
import { splitReference } from '../../forge/request.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { type FreshAgentDeps, openFreshAgent } from './fresh-agent.ts';

/** One task of a fresh agent. */
export interface AuditedRun {
  /** How the task ended: `complete`, `refusal`, `truncated`, or the code of its error. */
  readonly outcome: string;
  /** Calls of the audited tool. */
  readonly uses: number;
  readonly toolCalls: number;
  readonly turns: number;
  readonly tokens: number;
}

export interface AuditedTask {
  readonly task: string;
  readonly withTool: AuditedRun;
  readonly withoutTool: AuditedRun;
}

const TASK_TIMEOUT_MS = 10 * 60_000;

/** Gives each task to a fresh agent with the tool, and to one without it. Throws TEMPER_CANCELLED when the user interrupts it. */
export async function auditTool(
  deps: Omit<FreshAgentDeps, 'onUse' | 'maxTokens'> & { readonly digest: Digest; readonly maxTokensPerTask: number },
  tasks: readonly string[],
  signal: AbortSignal,
): Promise<AuditedTask[]> {
  const { digest, maxTokensPerTask, ...shared } = deps;
  const others = withoutTool(deps.tools, digest);
  const run = async (tools: FreshAgentDeps['tools'], task: string): Promise<AuditedRun> => {
    let uses = 0;
    const onUse = (used: Digest): void => {
      uses += used === digest ? 1 : 0;
    };
    const engine = await openFreshAgent({ ...shared, tools, maxTokens: maxTokensPerTask, onUse });
    try {
      const end = await handle(engine, task, signal);
      return { ...end, uses };
    } finally {
      await engine.stop();
    }
  };
  const audited: AuditedTask[] = [];
  for (const task of tasks)
    audited.push({ task, withTool: await run(deps.tools, task), withoutTool: await run(others, task) });
  return audited;
}

/** Without the tool, and without composed tools that call it, directly or through others. */
function withoutTool(tools: readonly RegisteredTool[], digest: Digest): RegisteredTool[] {
  const removed = new Set<string | undefined>([digest]);
  const calls = ({ artifact }: RegisteredTool): boolean =>
    (artifact.implementation.steps ?? []).some(({ tool }) => removed.has(splitReference(tool).digest));
  for (let found: RegisteredTool | undefined; ; removed.add(found.digest)) {
    found = tools.find((tool) => !removed.has(tool.digest) && calls(tool));
    if (found === undefined) return tools.filter((tool) => !removed.has(tool.digest));
  }
}

async function handle(engine: Engine, text: string, signal: AbortSignal): Promise<Omit<AuditedRun, 'uses'>> {
  const op: CallOptions = { signal, deadline: systemClock.monotonic() + TASK_TIMEOUT_MS, key: ulids.next('audit') };
  try {
    const { finishReason, ...used } = await engine.handle({ session: ulids.next('session'), text }, op);
    const { toolCalls, turns, usage } = used;
    return { outcome: finishReason, toolCalls, turns, tokens: usage.inputTokens + usage.outputTokens };
  } catch (error) {
    if (!isTemperError(error) || signal.aborted) throw error;
    const used = error.details['used'];
    return { outcome: error.code, ...usedBefore(isJsonObject(used as Json) ? (used as JsonObject) : {}) };
  }
}

function usedBefore(used: JsonObject): Pick<AuditedRun, 'toolCalls' | 'turns' | 'tokens'> {
  const count = (value: Json | undefined): number => (typeof value === 'number' ? value : 0);
  const usage = used['usage'];
  const tokens = count(member(usage, 'inputTokens')) + count(member(usage, 'outputTokens'));
  return { toolCalls: count(used['toolCalls']), turns: count(used['turns']), tokens };
}
