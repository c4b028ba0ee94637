/** Members of requests between the containers of a pod. Parsers throw TEMPER_TOOL_INPUT_INVALID. */
import { isObjectId } from '../../../git/objects/object-id.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import { TemperError } from '../../../lib/errors.ts';
import { type Json, member, textAt } from '../../../lib/json.ts';
import type { CallContext } from '../../../tools/contract.ts';

const MAX_TEXT = 4_096;

/** For whom Git runs. */
export function callerOf({ agent, namespace, session, rootMessage, op }: CallContext): Json {
  return { agent, namespace, session, rootMessage, key: op.key };
}

export function contextIn(value: Json, op: CallOptions): CallContext {
  const texts = textsIn(member(value, 'caller') ?? null, ['agent', 'namespace', 'session', 'rootMessage', 'key']);
  if (!texts.every(isText)) throw invalid();
  const [agent = '', namespace = '', session = '', rootMessage = '', key = ''] = texts;
  return {
    agent,
    namespace,
    session,
    rootMessage,
    stack: [],
    origin: 'Agent',
    op: { ...op, key },
    invoke: () => Promise.reject(new TemperError('TEMPER_INTERNAL', 'a request for Git calls no other tool')),
  };
}

export function textsIn(value: Json, names: readonly string[]): string[] {
  return names.map((name) => textAt(value, [name]));
}

export function isText(value: string): boolean {
  return value !== '' && value.length <= MAX_TEXT;
}

export function areIds(value: Json, most: number): value is string[] {
  return (
    Array.isArray(value) && value.length <= most && value.every((item) => typeof item === 'string' && isObjectId(item))
  );
}

export function invalid(): TemperError {
  return new TemperError('TEMPER_TOOL_INPUT_INVALID', 'the request for a repository is not valid');
}
