import { TemperError } from '../lib/errors.ts';

/** What a Git server did, or does not have. The next look may find something else. */
export function gitFailure(problem: string): TemperError {
  return new TemperError('TEMPER_CONNECTION_FAILED', problem, { retry: 'backoff' });
}
