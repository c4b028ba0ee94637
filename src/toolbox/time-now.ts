import type { Clock } from '../lib/clock.ts';
import type { Tool } from '../tools/contract.ts';

export function timeNowTool(clock: Clock): Tool {
  return {
    descriptor: {
      name: 'time_now',
      description: 'The time, as {utc: RFC 3339, epochMilliseconds}.',
      inputSchema: { type: 'object', properties: {}, additionalProperties: false },
      outputSchema: {
        type: 'object',
        properties: { utc: { type: 'string' }, epochMilliseconds: { type: 'integer' } },
        required: ['utc', 'epochMilliseconds'],
        additionalProperties: false,
      },
      category: 'code_execution',
      action: 'code:read',
      sideEffects: false,
      locality: 'Local',
    },
    async call() {
      const now = clock.now();
      return { utc: now.toISOString(), epochMilliseconds: now.getTime() };
    },
  };
}
