/** The subjects of the events that Temper itself publishes. docs/reference/events.md lists them. */
export const PLATFORM_SUBJECTS = {
  messageFailed: 'temper.message.failed',
  agentRunning: 'temper.agent.running',
  agentSuspended: 'temper.agent.suspended',
  agentNotReady: 'temper.agent.not-ready',
  agentTerminated: 'temper.agent.terminated',
  childEnded: 'temper.child.ended',
  quotaNearlyUsed: 'temper.quota.nearly-used',
  quotaExhausted: 'temper.quota.exhausted',
  toolForged: 'temper.tool.forged',
  toolPromoted: 'temper.tool.promoted',
  toolShared: 'temper.tool.shared',
  toolDemoted: 'temper.tool.demoted',
  toolRevoked: 'temper.tool.revoked',
  approvalRequested: 'temper.approval.requested',
  approvalDecided: 'temper.approval.decided',
  fileCreated: 'temper.file.created',
} as const;

export type PlatformSubject = (typeof PLATFORM_SUBJECTS)[keyof typeof PLATFORM_SUBJECTS];
