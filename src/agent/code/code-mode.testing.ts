import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import type { SessionSandbox } from '../../sandbox/session-port.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import {
  anAgent,
  scriptedInvoker,
  scriptedLoop,
  type ScriptedAnswer,
  type ScriptedTool,
} from '../loop/scripted-loop.testing.ts';
import type { RunningAgent } from '../message.ts';
import type { RequiredValue } from '../returns/finish.ts';
import { CodeSessions } from './code-sessions.ts';

/** Fixtures for the tests of code mode: a scripted model and scripted tools, and real runners. */

export interface CodeFixtureOptions {
  records?: RecordStore;
  limits?: RunningAgent['spec']['limits'];
  spec?: Partial<AgentSpec>;
  /** Tools whose calls have effects; the others can be repeated. */
  effects?: readonly string[];
  returns?: RequiredValue;
  /** The runners of another fixture. */
  sessions?: CodeSessions;
}

export function aCodeAgent({ limits, spec }: Pick<CodeFixtureOptions, 'limits' | 'spec'> = {}): RunningAgent {
  const agent = anAgent(limits);
  return { ...agent, spec: { ...agent.spec, invocation: 'Code', ...spec } };
}

/** An agent loop in code mode. Every call of `send` uses the same agent. */
export function codeLoop(
  sandbox: SessionSandbox,
  answers: ScriptedAnswer[],
  tools: Record<string, ScriptedTool> = {},
  options: CodeFixtureOptions = {},
) {
  const { records = memoryRecordStore(), effects = [] } = options;
  const agent = aCodeAgent(options);
  const base = scriptedInvoker(tools);
  const invoker = {
    ...base,
    visible: (...caller: Parameters<typeof base.visible>) =>
      base.visible(...caller).map((tool) => ({ ...tool, sideEffects: effects.includes(tool.name) })),
  };
  const { sessions = new CodeSessions(sandbox), returns } = options;
  const fixture = scriptedLoop(answers, tools, { records, invoker, returns, code: { sessions } });
  return {
    ...fixture,
    sessions,
    send: (text: string, message?: string) =>
      fixture.send(text, { agent, milliseconds: 60_000, ...(message === undefined ? {} : { message }) }),
    /** The results of `invoke` that the model got, as text. */
    results: (): string[] =>
      (fixture.model.requests.at(-1)?.messages ?? []).flatMap((item) => (item.role === 'tool' ? item.text : [])),
    [Symbol.asyncDispose]: () => sessions.closeAll(),
  };
}
