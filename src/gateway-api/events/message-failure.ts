import { type ErrorCode, isErrorCode } from '../../lib/error-codes.ts';
import { printable } from '../../lib/printable.ts';

const MAX_CHARACTERS = 1_000;

/** Why a message failed, from the line of its session that says so. A pod may have written any code and text. */
export function messageFailure({ code, text }: { code: string; text: string }): { code: ErrorCode; message: string } {
  return { code: isErrorCode(code) ? code : 'TEMPER_INTERNAL', message: printable(text, MAX_CHARACTERS) };
}
