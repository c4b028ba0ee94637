import { pino, stdTimeFunctions } from 'pino';
import { isTemperError, messageOf } from '../lib/errors.ts';
import { isUnprintable } from '../lib/escape.ts';
import type { Secrets } from './secrets.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** Writes one JSON line an event. Fields are facts for machines; never prompts, arguments or results of tools. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
}

export interface LoggerOptions {
  level: LogLevel;
  destination: { write(line: string): unknown };
  secrets: Secrets;
}

/**
 * Every line passes the redactor whole, field names, messages, errors and their causes included; then what a terminal or a
 * log viewer would obey (C1 controls, bidirectional and zero-width marks) is escaped. The line stays JSON.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { level, destination, secrets } = options;
  return pino(
    {
      level,
      base: null,
      messageKey: 'message',
      errorKey: 'error',
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: errorFields },
    },
    { write: (line: string) => void destination.write(safeLine(line, secrets)) },
  );
}

function safeLine(line: string, secrets: Secrets): string {
  return secrets.redact(line).replaceAll(/[^\x20-\x7e\n]/gu, escaped);
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (!isUnprintable(code)) return character;
  let out = '';
  for (let unit = 0; unit < character.length; unit += 1) {
    out += `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`;
  }
  return out;
}

/** How deep causes are followed. */
const CAUSES = 4;

/** Code, message and causes; the stack of what is not one of our own errors, since that is a defect. */
function errorFields(error: unknown, depth = 0): object {
  const message = messageOf(error);
  if (!(error instanceof Error)) return { message };
  const cause = error.cause === undefined || depth >= CAUSES ? {} : { cause: errorFields(error.cause, depth + 1) };
  if (isTemperError(error)) return { code: error.code, message, ...cause };
  return { name: error.name, message, stack: error.stack, ...cause };
}
