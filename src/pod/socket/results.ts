import { isTemperError, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { Json } from '../../lib/json.ts';
import type { SocketResult } from './frame-fields.ts';

/** Runs `work` and converts its result for the other container. An error becomes a code and a message, without stack or local paths. */
export async function resultOf(work: () => Promise<Json>): Promise<SocketResult> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    if (isTemperError(error)) return { ok: false, code: error.code, message: printable(error.message, 2_000) };
    return { ok: false, code: 'TEMPER_INTERNAL', message: 'the other container failed to handle the request' };
  }
}

/** The value, or throws the error that the other container reported. */
export function valueOrThrow(answer: SocketResult): Json {
  if (answer.ok) return answer.value;
  throw new TemperError(answer.code, printable(answer.message));
}
