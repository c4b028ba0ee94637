import { isJsonObject, type Json, textAt } from '../../lib/json.ts';
import { callIdOf } from '../../tools/approvals.ts';
import type { CallContext } from '../../tools/contract.ts';

/** For whom a program runs: what programs and logs get, to find what belongs together. Nothing of it is a right. */
export interface ProgramCaller {
  agent: string;
  session: string;
  /** The root message. */
  message: string;
  call: string;
}

const MEMBERS = ['agent', 'session', 'message', 'call'] as const;
const MAX_IDENTIFIER = 253;

export function programCaller({ agent, session, rootMessage, op }: CallContext): ProgramCaller {
  return { agent, session, message: rootMessage, call: callIdOf(op.key) };
}

/** The caller as another container sent it. Undefined when a member is missing, empty or too long. */
export function parseCaller(value: Json | undefined): ProgramCaller | undefined {
  if (!isJsonObject(value)) return undefined;
  const [agent, session, message, call] = MEMBERS.map((name) => textAt(value, [name]));
  const texts = [agent, session, message, call];
  if (!texts.every((text) => text !== undefined && isIdentifier(text))) return undefined;
  return { agent, session, message, call } as ProgramCaller;
}

/** The variables that every program of the call has. No grant gives or replaces them. */
export function callerEnvironment(caller: ProgramCaller | undefined): Record<string, string> {
  if (caller === undefined) return {};
  const variables = MEMBERS.map((name): [string, string] => [`TEMPER_${name.toUpperCase()}`, caller[name]]);
  return Object.fromEntries(variables.filter(([, value]) => isIdentifier(value)));
}

/** Printable ASCII: a program may print it to a terminal or a log. */
function isIdentifier(text: string): boolean {
  return text.length <= MAX_IDENTIFIER && /^[\x21-\x7e]+$/.test(text);
}
