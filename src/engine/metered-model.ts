import { estimateTokens } from '../agent/history/context-window.ts';
import { TemperError } from '../lib/errors.ts';
import type { Model, ModelRequest, TokenUsage } from '../models/port.ts';
import type { EnginePorts } from './ports.ts';

type MeteringPorts = Pick<EnginePorts, 'models' | 'ledger' | 'ids'>;

/**
 * Charges every model response to the agent's ledger accounts, including those of judges and reviewers. A failed response is charged
 * with the full reservation. Throws TEMPER_QUOTA_EXCEEDED.
 */
export function meteredModel({ models, ledger, ids }: MeteringPorts): Model {
  const amounts = (request: ModelRequest, usage: Pick<TokenUsage, 'inputTokens' | 'outputTokens'>) => ({
    ...usage,
    costMicros: models.costOf(request.model, usage),
  });
  return {
    async *stream(request, op) {
      const maxUsage = { inputTokens: estimateTokens(request), outputTokens: request.maxOutputTokens };
      const reserved = amounts(request, maxUsage);
      const reservation = await ledger.reserve(reserved, { ...op, key: ids.next('examiner') });
      if (!reservation.granted) {
        const { used, limit, quota, resumesAt } = reservation;
        throw new TemperError(
          'TEMPER_QUOTA_EXCEEDED',
          `${used} of ${limit} allowed by ${quota} are used; resumes ${resumesAt}`,
        );
      }
      let used = reserved;
      try {
        for await (const event of models.model.stream(request, op)) {
          if (event.type === 'end') {
            const { inputTokens, outputTokens } = event.usage;
            used = amounts(request, { inputTokens, outputTokens });
          }
          yield event;
        }
      } finally {
        await ledger.commit(reservation.id, used);
      }
    },
    embed: (texts, op) => models.model.embed(texts, op),
  };
}
