import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { PanelVerdict } from '../../tempering/judge/panel.ts';
import type { PromotionRecord } from '../../tempering/promotion/promotion-record.ts';
import type { PromotionRules } from '../../tempering/promotion/promotion-rules.ts';
import type { ObservedDecision } from './approval/observe-approval.ts';
import type { ExaminationProgress } from './examination/replayed-examination.ts';
import type { VerificationResult } from './verification.ts';

/** What every state of a promotion depends on. */
interface ObservedBase {
  readonly now: Date;
  /** False: the Agent was deleted. */
  readonly agentExists: boolean;
  readonly rules: PromotionRules;
  /** The session of the tool contains untrusted content. */
  readonly tainted: boolean;
  /** Why the agent and its policy permit no promotion now; empty when they permit it. */
  readonly policyGaps: readonly string[];
}

export type ObservedIn<S extends ObservedPromotion['record']['state']> = Extract<
  ObservedPromotion,
  { record: { state: S } }
>;

type RecordIn<S extends PromotionRecord['state']> = Extract<PromotionRecord, { state: S }>;

/** All inputs of the next step of one promotion, by its state. */
export type ObservedPromotion =
  | (ObservedBase & {
      readonly record: RecordIn<'Requested'>;
      /** False: its session was closed, or NATS lost it. */
      readonly toolExists: boolean;
      /** The name of the object, when it has the digest and is in service. */
      readonly promoted: boolean;
      /** What the tool lacks: uses, dependencies, a free name. */
      readonly toolGaps: readonly string[];
      /** By digest. */
      readonly dependencies: ReadonlyMap<string, ToolArtifact>;
    })
  | (ObservedBase & {
      readonly record: RecordIn<'Verifying'>;
      /** Undefined while the pod has sent no outputs. */
      readonly result: VerificationResult | undefined;
      /** Why the pod cannot send outputs any more. */
      readonly podProblem: string | undefined;
    })
  | (ObservedBase & {
      readonly record: RecordIn<'Examining'>;
      /** Undefined while the pod runs the last round. */
      readonly progress: ExaminationProgress | undefined;
      readonly podProblem: string | undefined;
      /** The models that write cases. */
      readonly testers: readonly string[];
      /** Tools that it calls and that are not in service any more. */
      readonly toolGaps: readonly string[];
      readonly dependencies: ReadonlyMap<string, ToolArtifact>;
      readonly sourceWithheld: boolean;
    })
  | (ObservedBase & ObservedDecision & { readonly record: RecordIn<'AwaitingApproval'>; readonly toolExists: boolean })
  | (ObservedBase & {
      readonly record: RecordIn<'PanelReview'>;
      readonly review: PanelVerdict | undefined;
      /** No user can be asked about a tool that he cannot read. */
      readonly sourceWithheld: boolean;
    })
  | (ObservedBase & { readonly record: RecordIn<'Promoted' | 'Rejected' | 'Candidate'> });
