import { ERROR_CODES } from '../../lib/error-codes.ts';

const NOTICE = '<!-- Made by make generate from src/lib/error-codes.ts; do not edit. -->';

/** The page of error codes. */
export function errorsPage(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { meaning, fix }]) => `| \`${code}\` | ${cell(meaning)} | ${cell(fix)} |`,
  );
  const intro =
    'Every error has one of these codes, in its message, in results given to models and in the log. Decide by the code; messages may change.';
  return `${[NOTICE, '# Error codes', intro, ['| code | meaning | what to do |', '|---|---|---|', ...rows].join('\n')].join('\n\n')}\n`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
