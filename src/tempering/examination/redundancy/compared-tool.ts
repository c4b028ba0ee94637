import type { ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import type { Json } from '../../../lib/json.ts';

/** A tool in service under another name, which an examined tool must not repeat. */
export interface ComparedTool {
  artifact: ToolArtifact;
  tier: 'Agent' | 'Shared';
  /** Reads inputs of its earlier uses. */
  recorded(): Promise<readonly Json[]>;
}

/** The tools of tiers Agent and Shared that the agent of an examined tool can call, and whose digest and name are others. */
export interface ToolsInService {
  tools: readonly ComparedTool[];
  incomparable: readonly IncomparableTool[];
}

/** A tool that is not compared, because an output depends on more than its input: the recorded answers of one tool are not those of another. */
export interface IncomparableTool {
  name: string;
  reason: string;
}

/** The reason why no tool is compared with an examined one that has another influence than its input. */
export function ofExamined(influence: string): string {
  return `the examined tool is the cause: ${influence}`;
}
