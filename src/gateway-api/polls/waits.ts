/** The longest wait that a request may ask for, in seconds, for a message or another assignment. */
export const MAX_POLL_SECONDS = 60;
/** The same for the state of an asked message. */
export const MAX_TASK_WAIT_SECONDS = 25;
