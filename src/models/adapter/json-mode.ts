import type { ModelInput } from '../port.ts';

const JSON_INSTRUCTION = 'Answer with one JSON object and nothing else.';

/** The system prompt; in JSON mode with an instruction that some vendors require and the others accept. */
export function systemPrompt(request: ModelInput): string {
  if (request.responseFormat !== 'json') return request.system;
  return request.system === '' ? JSON_INSTRUCTION : `${request.system}\n\n${JSON_INSTRUCTION}`;
}
