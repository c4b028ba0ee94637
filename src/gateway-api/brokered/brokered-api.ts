/** Tools that a gateway executes for pods. This file names types and names only, so that a pod does not load the schema library. */
export type { BrokeredCallRequest, BrokeredToolDefinition } from './brokered-schemas.ts';

/** Request header of a repeated request: an earlier one got no answer, so it may have been executed. */
export const UNANSWERED_HEADER = 'temper-unanswered';
