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
  /** Tools that are not compared, because an output depends on more than its input. */
  incomparable: number;
}
