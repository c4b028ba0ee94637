import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

const MAX_MESSAGE = 500;

/** What the database says about the query. */
export function queryFailed(problem: string): TemperError {
  return new TemperError('TEMPER_DATABASE_QUERY_FAILED', `the query failed: ${printable(problem, MAX_MESSAGE)}`);
}

export function unavailable(database: string, problem: string, cause?: unknown): TemperError {
  return new TemperError(
    'TEMPER_DATABASE_UNAVAILABLE',
    `database "${database}" cannot be used: ${printable(problem, MAX_MESSAGE)}`,
    { cause, retry: 'backoff' },
  );
}

export function roleRefused(database: string, problem: string): TemperError {
  return new TemperError(
    'TEMPER_DATABASE_ROLE_REFUSED',
    `database "${database}": ${printable(problem, MAX_MESSAGE)}; use a role that may only SELECT`,
  );
}
