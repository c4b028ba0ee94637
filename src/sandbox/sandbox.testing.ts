/** Fixtures for the tests and benchmarks of the sandbox. */
import { systemClock } from '../lib/clock.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { HostCalls, Job, JobLimits } from './port.ts';

const TEST_LIMITS: JobLimits = {
  durationMilliseconds: 5_000,
  memoryBytes: 134_217_728,
  outputBytes: 262_144,
  hostCalls: 20,
  hostBytes: 262_144,
};

export interface JobChanges extends Partial<Omit<Job, 'limits'>> {
  limits?: Partial<JobLimits>;
}

export function aJob(source: string, changes: JobChanges = {}): Job {
  const limits = { ...TEST_LIMITS, ...changes.limits };
  return { language: 'javascript', source, input: {}, apis: [], ...changes, limits };
}

export function anOp(signal = new AbortController().signal, milliseconds = 60_000): CallOptions {
  return { signal, deadline: systemClock.monotonic() + milliseconds, key: 'test' };
}

/** A host that echoes its input. */
export const echoHost: HostCalls = {
  call: (api, input) =>
    Promise.resolve(
      api === 'fetch'
        ? {
            status: 201,
            headers: { 'content-type': 'text/plain' },
            body: JSON.stringify(input),
            url: 'https://x.test/',
            redirected: false,
          }
        : JSON.stringify(input),
    ),
};
