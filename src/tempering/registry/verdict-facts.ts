import type { JudgeVerdict } from '../../forge/types.ts';
import type { JsonObject } from '../../lib/json.ts';

/** What the audit says about a verdict: the model, what it was asked and what it decided, without its words. */
export function verdictFacts(verdict: JudgeVerdict): JsonObject {
  const { approved, confidence, code, model, promptDigest, templateDigest, citedLines } = verdict;
  return {
    approved,
    confidence,
    model,
    promptDigest,
    ...(code === undefined ? {} : { code }),
    ...(templateDigest === undefined ? {} : { templateDigest }),
    ...(citedLines === undefined ? {} : { citedLines: [...citedLines] }),
  };
}
