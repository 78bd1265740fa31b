// @ts-check
// The shapes of what the server sends. They are types only.

/**
 * A canonical event of a run.
 * @typedef {object} Event
 * @property {string} sourceEventId
 * @property {number} sourceSeq
 * @property {string} sourceInstanceId
 * @property {string} runId
 * @property {string} normalizedSessionId
 * @property {string} [turnId]
 * @property {string} [itemId]
 * @property {string} eventType
 * @property {string} emittedAt
 * @property {unknown} payload
 */

/**
 * A run as the list shows it.
 * @typedef {object} RunInfo
 * @property {string} id
 * @property {'script' | 'harness' | 'agent' | 'recorded'} kind
 * @property {string} name
 * @property {string} runId
 * @property {string} sessionId
 * @property {string} runnerId
 * @property {string} startedAt
 * @property {string} [endedAt]
 * @property {boolean} active
 * @property {string} phase
 * @property {number} events
 * @property {number} pendingRequests
 * @property {boolean} turnActive
 * @property {string} state
 * @property {string} reason
 * @property {boolean} reduced
 */

/**
 * What can be started.
 * @typedef {{kind: string, name: string, description: string}} Choice
 */

/**
 * Everything that is shown beside a run.
 * @typedef {object} Overview
 * @property {Choice[]} choices
 * @property {string} text
 * @property {RunInfo[]} runs
 * @property {{active: number, kept: number, streams: number, bodyBytes: number}} limits
 */

/**
 * What is left of events that are not kept.
 * @typedef {object} Gap
 * @property {number} events
 * @property {number} fromSeq
 * @property {number} toSeq
 * @property {{turnId: string, itemId: string, text: string}[]} text
 * @property {boolean} cut
 */

/**
 * What is wrong with a line, found by the server in a recorded run.
 * @typedef {{line: number, path?: string, rule: string, detail: string}} RecordedProblem
 */

/**
 * One line of the stream of a run.
 * @typedef {object} StreamRecord
 * @property {RunInfo} [run]
 * @property {number} [index]
 * @property {number} [next]
 * @property {{message: {kind: string, event?: Event, code?: string, message?: string, level?: string, status?: string,
 *   commandId?: string, detail?: string}}} [line]
 * @property {Gap} [gap]
 * @property {RecordedProblem} [problem]
 * @property {boolean} [end]
 */

/**
 * The final trace of a run. Its snapshot is read from the text.
 * @typedef {object} Trace
 * @property {RunInfo} run
 * @property {{exitCode: number | null, success: boolean, signal: number | null} | null} runnerExit
 * @property {string} runnerStderr
 * @property {string} forced
 * @property {string} fault
 * @property {RecordedProblem[]} problems
 * @property {number} problemCount
 */

export {};
