import type { JudgeVerdict, RefusedTool } from '../../forge/types.ts';
import type { PanelVerdict } from '../judge/panel.ts';
import type { RegisteredTool } from '../types.ts';
import { WITHHELD } from './withheld-sources.ts';

/** Judges, reviewers and gates may quote the source. These forms keep what they decided, without their words. */

export function toolWithoutWords(tool: RegisteredTool): RegisteredTool {
  return { ...tool, verdicts: tool.verdicts.map(verdictWithoutWords) };
}

export function refusalWithoutWords(refused: RefusedTool): RefusedTool {
  const gates = refused.gates.map((result) => ({ ...result, note: '' }));
  return { ...refused, message: WITHHELD, details: {}, gates };
}

export function panelWithoutWords(panel: PanelVerdict): PanelVerdict {
  const [safety, correctness] = panel.verdicts;
  const verdicts: PanelVerdict['verdicts'] = [verdictWithoutWords(safety), verdictWithoutWords(correctness)];
  // A panel that could not be asked gives the cause, and has read nothing.
  const isUnavailable = panel.code === 'TEMPER_JUDGE_UNAVAILABLE';
  return isUnavailable ? panel : { ...panel, reasoning: WITHHELD, verdicts };
}

function verdictWithoutWords(verdict: JudgeVerdict): JudgeVerdict {
  return { ...verdict, reasoning: WITHHELD };
}
