import { estimateTokens } from '../../agent/context.ts';
import type { Ledger } from '../../ledger/port.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Ids } from '../../lib/ids.ts';
import type { NamedModelSet } from '../../models/named-models.ts';
import type { Model, ModelRequest, TokenUsage } from '../../models/port.ts';
import { costsNothing } from '../../models/price.ts';

type Tokens = Pick<TokenUsage, 'inputTokens' | 'outputTokens'>;

/** The models of the gateway, and the real name of the one that makes vectors. */
export interface ChargedModels extends NamedModelSet {
  embedding: string;
}

/** No answer has so many tokens; a figure beyond it is a provider's mistake. */
const MOST_TOKENS = 100_000_000;

/**
 * The models, every answer charged to the accounts of one agent: what it may cost is reserved first, what the provider says it cost is
 * settled after. An answer that breaks off, or that nobody waits for, is charged as reserved; one that was refused before it began costs
 * nothing. Throws TEMPER_QUOTA_EXCEEDED, TEMPER_LEDGER_UNAVAILABLE and what models throw.
 */
export function chargedModel(models: ChargedModels, ledger: Ledger, ids: Ids): Model {
  const amounts = (model: string, tokens: Tokens) => ({ ...tokens, costMicros: models.costOf(model, tokens) });
  return {
    async *stream(request, op) {
      const maximum = amounts(request.model, mostOf(request));
      const settle = await reserved(ledger, maximum, { ...op, key: ids.next('call') });
      let used: Parameters<typeof settle>[0] = maximum;
      let began = false;
      try {
        for await (const event of models.model.stream(request, op)) {
          began = true;
          if (event.type === 'end') used = amounts(request.model, plausible(event.usage));
          yield event;
        }
      } catch (error) {
        if (!began && costsNothing(error)) used = {};
        throw error;
      } finally {
        await settle(used);
      }
    },
    async embed(texts, op) {
      const characters = texts.reduce((sum, text) => sum + text.length, 0);
      const maximum = amounts(models.embedding, { inputTokens: Math.ceil(characters / 4), outputTokens: 0 });
      const settle = await reserved(ledger, maximum, { ...op, key: ids.next('call') });
      let used: Parameters<typeof settle>[0] = maximum;
      try {
        return await models.model.embed(texts, op);
      } catch (error) {
        if (costsNothing(error)) used = {};
        throw error;
      } finally {
        await settle(used);
      }
    },
  };
}

async function reserved(
  ledger: Ledger,
  maximum: Parameters<Ledger['reserve']>[0],
  op: Parameters<Ledger['reserve']>[1],
): Promise<(used: Parameters<Ledger['settle']>[1]) => Promise<void>> {
  const reservation = await ledger.reserve(maximum, op);
  if (reservation.granted) return (used) => ledger.settle(reservation.id, used);
  const { quota, used, limit, resumesAt } = reservation;
  const { inputTokens = 0, outputTokens = 0 } = maximum;
  throw new TemperError(
    'TEMPER_QUOTA_EXCEEDED',
    `${used} of ${limit} allowed by ${quota} are used, too many for a call of ${inputTokens} + ${outputTokens} tokens; resumes ${resumesAt}`,
    { details: { quota, used, limit, resumesAt } },
  );
}

function mostOf(request: ModelRequest): Tokens {
  return { inputTokens: estimateTokens(request), outputTokens: request.maxOutputTokens };
}

/** Counters take whole numbers from 0; what a provider reports is text from outside. */
function plausible({ inputTokens, outputTokens }: TokenUsage): Tokens {
  const whole = (tokens: number): number =>
    Number.isFinite(tokens) ? Math.min(MOST_TOKENS, Math.max(0, Math.ceil(tokens))) : 0;
  return { inputTokens: whole(inputTokens), outputTokens: whole(outputTokens) };
}
