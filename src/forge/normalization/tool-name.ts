import { TOOL_NAME } from '../request.ts';

const MAX_LENGTH = 63;

/** The snake_case form of a name such as `csvRows` or `CSV Rows`; undefined when no valid name follows from it. */
export function snakeCase(name: string): string | undefined {
  if (name.length > 2 * MAX_LENGTH) return undefined;
  const snake = name
    .normalize('NFKD')
    .replaceAll(/\p{Mn}/gu, '')
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[\s./:_-]{1,20}/g, '_')
    .replaceAll(/^_+|_+$/g, '');
  return TOOL_NAME.test(snake) ? snake : undefined;
}
