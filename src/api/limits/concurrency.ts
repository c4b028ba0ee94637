import type { AgentSpec } from '../v1alpha1/agent.ts';

/** A long session blocks no other one, and the memory of a pod of the default class holds so many histories. */
export const DEFAULT_CONCURRENCY = 4;
export const MAX_CONCURRENCY = 16;

/** The sessions of the agent that it works on at the same time. */
export function concurrencyOf({ limits }: Pick<AgentSpec, 'limits'>): number {
  return limits?.concurrency ?? DEFAULT_CONCURRENCY;
}
