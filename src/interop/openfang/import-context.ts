import type { PatternRules } from '../../api/findings.ts';
import type { LocalTool } from './tool-names.ts';

/** What an import knows about this version of Temper. */
export interface ImportContext {
  /** The TrustPolicy of the imported agents. */
  readonly policy: string;
  readonly tools: readonly LocalTool[];
  readonly patterns: PatternRules;
}
