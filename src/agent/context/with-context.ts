import type { ModelMessage } from '../../models/port.ts';

/** The messages as the model gets them: the first one, which is a user's, begins with the context of the agent. Pure. */
export function withContext(context: string | undefined, messages: readonly ModelMessage[]): ModelMessage[] {
  if (context === undefined || context === '') return [...messages];
  const [first, ...rest] = messages;
  if (first?.role !== 'user') return [{ role: 'user', text: context }, ...messages];
  return [{ role: 'user', text: `${context}\n\n${first.text}` }, ...rest];
}
