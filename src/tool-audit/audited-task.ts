import type { Engine } from '../engine/engine.ts';
import type { Digest } from '../lib/canonical.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { systemClock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import { ulids } from '../lib/ids.ts';
import { isJsonObject, type Json, type JsonObject, member } from '../lib/json.ts';
import { splitReference } from '../forge/request.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import { type FreshAgentDeps, openFreshAgent } from './fresh-agent.ts';
import { TASK_TIMEOUT_MS } from './limits.ts';
import type { AuditedRun } from './report.ts';

/** Gives the task to a fresh agent with these tools. Throws TEMPER_CANCELLED when the signal aborts. */
export async function runAuditedTask(
  deps: Omit<FreshAgentDeps, 'onUse'> & { readonly digest: Digest },
  task: string,
  signal: AbortSignal,
): Promise<AuditedRun> {
  let uses = 0;
  const onUse = (used: Digest): void => {
    uses += used === deps.digest ? 1 : 0;
  };
  const engine = await openFreshAgent({ ...deps, onUse });
  try {
    const end = await handle(engine, task, signal);
    return { ...end, uses };
  } finally {
    await engine.stop();
  }
}

/** Without the tool, and without composed tools that call it, directly or through others. */
export function withoutTool(tools: readonly RegisteredTool[], digest: Digest): RegisteredTool[] {
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
