import type { ModelRequest } from './port.ts';

const JSON_ONLY = 'Answer with one JSON object and nothing else.';

/** The system prompt, with the sentence that the JSON mode of every vendor needs to see or does without. */
export function systemPrompt(request: ModelRequest): string {
  if (request.responseFormat !== 'json') return request.system;
  return request.system === '' ? JSON_ONLY : `${request.system}\n\n${JSON_ONLY}`;
}
