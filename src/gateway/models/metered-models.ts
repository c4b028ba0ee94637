import { estimateTokens } from '../../agent/history/context-window.ts';
import type { Ledger } from '../../ledger/port.ts';
import { TemperError } from '../../lib/errors.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { NamedModelSet } from '../../models/named-models.ts';
import type { Model, ModelRequest, TokenUsage } from '../../models/port.ts';
import { isFreeFailure } from '../../models/price.ts';

type Tokens = Pick<TokenUsage, 'inputTokens' | 'outputTokens'>;

/** The models of the gateway, and the real name of the embedding model. */
export interface GatewayModelSet extends NamedModelSet {
  embedding: string;
}

/** Upper bound of reported tokens; a larger figure is a provider's error. */
const MAX_TOKENS = 100_000_000;

/**
 * The models, with every response charged to the accounts of one agent: reserves the maximum cost first and commits the usage that the
 * provider reports. A response that is cut off or cancelled is charged as reserved; one refused before its first event costs nothing.
 * Throws TEMPER_QUOTA_EXCEEDED, TEMPER_LEDGER_UNAVAILABLE and the errors of models.
 */
export function withLedgerMetering(models: GatewayModelSet, ledger: Ledger, ids: IdGenerator): Model {
  const amounts = (model: string, tokens: Tokens) => ({ ...tokens, costMicros: models.costOf(model, tokens) });
  return {
    async *stream(request, op) {
      const maximum = amounts(request.model, maximumTokens(request));
      const commit = await reserve(ledger, maximum, { ...op, key: ids.next('call') });
      let used: Parameters<typeof commit>[0] = maximum;
      let started = false;
      try {
        for await (const event of models.model.stream(request, op)) {
          started = true;
          if (event.type === 'end') used = amounts(request.model, plausible(event.usage));
          yield event;
        }
      } catch (error) {
        if (!started && isFreeFailure(error)) used = {};
        throw error;
      } finally {
        await commit(used);
      }
    },
    async embed(texts, op) {
      const characters = texts.reduce((sum, text) => sum + text.length, 0);
      const maximum = amounts(models.embedding, { inputTokens: Math.ceil(characters / 4), outputTokens: 0 });
      const commit = await reserve(ledger, maximum, { ...op, key: ids.next('call') });
      let used: Parameters<typeof commit>[0] = maximum;
      try {
        return await models.model.embed(texts, op);
      } catch (error) {
        if (isFreeFailure(error)) used = {};
        throw error;
      } finally {
        await commit(used);
      }
    },
  };
}

async function reserve(
  ledger: Ledger,
  maximum: Parameters<Ledger['reserve']>[0],
  op: Parameters<Ledger['reserve']>[1],
): Promise<(used: Parameters<Ledger['commit']>[1]) => Promise<void>> {
  const reservation = await ledger.reserve(maximum, op);
  if (reservation.granted) return (used) => ledger.commit(reservation.id, used);
  const { quota, used, limit, resumesAt } = reservation;
  const { inputTokens = 0, outputTokens = 0 } = maximum;
  throw new TemperError(
    'TEMPER_QUOTA_EXCEEDED',
    `${used} of ${limit} allowed by ${quota} are used, too many for a call of ${inputTokens} + ${outputTokens} tokens; resumes ${resumesAt}`,
    { details: { quota, used, limit, resumesAt } },
  );
}

function maximumTokens(request: ModelRequest): Tokens {
  return { inputTokens: estimateTokens(request), outputTokens: request.maxOutputTokens };
}

/** Normalizes untrusted usage of a provider to integers from 0 to MAX_TOKENS. */
function plausible({ inputTokens, outputTokens }: TokenUsage): Tokens {
  const whole = (tokens: number): number =>
    Number.isFinite(tokens) ? Math.min(MAX_TOKENS, Math.max(0, Math.ceil(tokens))) : 0;
  return { inputTokens: whole(inputTokens), outputTokens: whole(outputTokens) };
}
