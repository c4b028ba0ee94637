import type { ProviderDirective } from '../provider/port.ts';

/** What a provider does after a turn, and the form of the reply when the message ends. */
export interface TurnDirective {
  directive?: ProviderDirective;
  format?: 'json';
}
