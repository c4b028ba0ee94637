import { isTemperError, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/escape.ts';
import type { Json } from '../../lib/json.ts';
import type { Answer } from './values.ts';

/** What a piece of work came to, for the other side: a code and a message, never a stack or a path of this side. */
export async function answerOf(work: () => Promise<Json>): Promise<Answer> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    if (isTemperError(error)) return { ok: false, code: error.code, message: printable(error.message, 2_000) };
    return { ok: false, code: 'TEMPER_INTERNAL', message: 'the other container could not answer' };
  }
}

/** The value, or the error as the other side told it. */
export function valueOf(answer: Answer): Json {
  if (answer.ok) return answer.value;
  throw new TemperError(answer.code, printable(answer.message));
}
