import { type Json, parseUntrustedJson } from '../../lib/json.ts';
import type { Invoker, ToolResult } from '../../tools/contract.ts';
import { FINISH_TOOL_NAME, type FinishVerdict, type RequiredValue } from './finish.ts';

/** The value of one message of an agent with `spec.returns`. */
export interface MessageResult {
  /** Accepts the value as the reply, or says what is wrong with it. The first accepted value counts. */
  finish(value: Json): FinishVerdict;
  /** The accepted value as JSON. */
  reply(): string | undefined;
  /** What the model is asked for, after an answer without a value. */
  reminder(): string;
  /** Another turn follows, which gives the value. */
  reset(): void;
  /** The tools of the agent, and `finish`. */
  withFinish(invoker: Invoker): Invoker;
}

function createMessageResult(required: RequiredValue): MessageResult {
  let accepted: string | undefined;
  let problem: string | undefined;
  const finish: MessageResult['finish'] = (value) => {
    if (accepted !== undefined) return { accepted: false, problem: 'another value was accepted before' };
    const verdict = required.check(value);
    if (verdict.accepted) accepted = verdict.reply;
    else ({ problem } = verdict);
    return verdict;
  };
  return {
    finish,
    reply: () => accepted,
    reset() {
      accepted = undefined;
    },
    reminder() {
      const reason = problem === undefined ? '' : ` The last value was refused: ${problem}.`;
      problem = undefined;
      return `[Your answer has no result.${reason} Call the tool ${FINISH_TOOL_NAME} with a result that matches its schema.]`;
    },
    withFinish: (invoker) => withFinish(invoker, required, finish),
  };
}

/** The dependencies of one message: with `returns`, the model gets `finish`, and the result of the message is kept. */
export function withMessageResult<D extends { invoker: Invoker }>(
  deps: D,
  returns: RequiredValue | undefined,
): D & { result?: MessageResult } {
  if (returns === undefined) return deps;
  const result = createMessageResult(returns);
  return { ...deps, result, invoker: result.withFinish(deps.invoker) };
}

/** Whether the text of an answer is an acceptable value itself. */
export function finishWithText(result: MessageResult, text: string): boolean {
  if (!text.trimStart().startsWith('{')) return false;
  try {
    return result.finish(parseUntrustedJson(text)).accepted;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** `finish` stands outside of the policy: it reaches nothing, and without it the agent could not answer. */
function withFinish(invoker: Invoker, { tool }: RequiredValue, finish: MessageResult['finish']): Invoker {
  const answer = (value: Json): ToolResult => {
    const verdict = finish(value);
    if (verdict.accepted) return { ok: true, tool: tool.name, output: { accepted: true }, milliseconds: 0 };
    const message = `the result was refused: ${verdict.problem}`;
    return { ok: false, tool: tool.name, error: { code: 'TEMPER_TOOL_INPUT_INVALID', message }, milliseconds: 0 };
  };
  return {
    invoke: (name, ...call) => invoker.invoke(name, ...call),
    invokeOrPark: async (name, input, ...call) =>
      name === FINISH_TOOL_NAME ? answer(input) : invoker.invokeOrPark(name, input, ...call),
    visible: (caller) => [...invoker.visible(caller), tool],
  };
}
