import type { Amounts } from './port.ts';
import type { WindowKind } from './windows.ts';

/** How much an agent or all agents of a policy may use. An absent limit means no limit. Money is in millionths. */
export interface QuotaLimits {
  tokensPerHour?: number;
  tokensPerDay?: number;
  costMicrosPerHour?: number;
  costMicrosPerDay?: number;
  costMicrosPerMonth?: number;
  toolCallsPerMinute?: number;
  networkBytesPerHour?: number;
}

/** What a quota counts; `micros` are millionths of a dollar. */
export type QuotaUnit = 'tokens' | 'micros' | 'calls' | 'bytes';

export interface QuotaRule {
  readonly limit: keyof QuotaLimits;
  /** The name of the field in manifests. */
  readonly field: string;
  readonly window: WindowKind;
  readonly unit: QuotaUnit;
}

/** Every quota, once. */
export const QUOTAS: readonly QuotaRule[] = [
  { limit: 'toolCallsPerMinute', field: 'toolCallsPerMinute', window: 'minute', unit: 'calls' },
  { limit: 'tokensPerHour', field: 'tokensPerHour', window: 'hour', unit: 'tokens' },
  { limit: 'costMicrosPerHour', field: 'costPerHour', window: 'hour', unit: 'micros' },
  { limit: 'networkBytesPerHour', field: 'networkBytesPerHour', window: 'hour', unit: 'bytes' },
  { limit: 'tokensPerDay', field: 'tokensPerDay', window: 'day', unit: 'tokens' },
  { limit: 'costMicrosPerDay', field: 'costPerDay', window: 'day', unit: 'micros' },
  { limit: 'costMicrosPerMonth', field: 'costPerMonth', window: 'month', unit: 'micros' },
];

/** The part of the amounts that a quota of this unit counts. */
export function amountOf(unit: QuotaUnit, amounts: Amounts): number {
  const { inputTokens = 0, outputTokens = 0, costMicros = 0, toolCalls = 0, networkBytes = 0 } = amounts;
  return { tokens: inputTokens + outputTokens, micros: costMicros, calls: toolCalls, bytes: networkBytes }[unit];
}

/** A number in the unit of a quota, as users read it: `100,000`; millionths of a dollar as `1.99`. */
export function quantityText(unit: QuotaUnit, amount: number): string {
  return (unit === 'micros' ? amount / 1_000_000 : amount).toLocaleString('en-US', { maximumFractionDigits: 6 });
}

export const UNIT_NAMES: Readonly<Record<QuotaUnit, string>> = {
  tokens: 'tokens',
  micros: 'dollars',
  calls: 'tool calls',
  bytes: 'bytes',
};
