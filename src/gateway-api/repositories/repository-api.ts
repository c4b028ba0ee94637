/** Repositories of connections, for the git tools of pods. This file names types only, so that a pod does not load the schema library. */
export type { AgentRepository, RepositoryQuestion, RepositoryReadRequest } from './repository-schemas.ts';
