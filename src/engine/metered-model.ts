import { estimateTokens } from '../agent/context.ts';
import { TemperError } from '../lib/errors.ts';
import type { Model, ModelRequest, TokenUsage } from '../models/port.ts';
import type { EnginePorts } from './ports.ts';

type Metering = Pick<EnginePorts, 'models' | 'ledger' | 'ids'>;

/**
 * The models of the place with every answer charged to the agent: what a judge costs is what forging costs. An answer that
 * fails is charged what was reserved. Throws TEMPER_QUOTA_EXCEEDED.
 */
export function meteredModel({ models, ledger, ids }: Metering): Model {
  const amounts = (request: ModelRequest, usage: Pick<TokenUsage, 'inputTokens' | 'outputTokens'>) => ({
    ...usage,
    costMicros: models.costOf(request.model, usage),
  });
  return {
    async *stream(request, op) {
      const most = { inputTokens: estimateTokens(request), outputTokens: request.maxOutputTokens };
      const maximum = amounts(request, most);
      const reservation = await ledger.reserve(maximum, { ...op, key: ids.next('examiner') });
      if (!reservation.granted) {
        const { used, limit, quota, resumesAt } = reservation;
        throw new TemperError(
          'TEMPER_QUOTA_EXCEEDED',
          `${used} of ${limit} allowed by ${quota} are used; resumes ${resumesAt}`,
        );
      }
      let used = maximum;
      try {
        for await (const event of models.model.stream(request, op)) {
          if (event.type === 'end') {
            const { inputTokens, outputTokens } = event.usage;
            used = amounts(request, { inputTokens, outputTokens });
          }
          yield event;
        }
      } finally {
        await ledger.settle(reservation.id, used);
      }
    },
    embed: (texts, op) => models.model.embed(texts, op),
  };
}
