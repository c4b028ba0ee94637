/**
 * The annotations of exported Approvals. The API server refuses their deletion by users, so a GitOps controller must not try it when the file
 * is gone.
 */
export const GITOPS_ANNOTATIONS: Readonly<Record<string, string>> = {
  'argocd.argoproj.io/sync-options': 'Prune=false',
  'kustomize.toolkit.fluxcd.io/prune': 'disabled',
};
