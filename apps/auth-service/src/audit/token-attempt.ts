import { AsyncLocalStorage } from 'node:async_hooks';
import { hideTokens } from '@platform/service-defaults';
import { userNameKey } from '../identity/identity';
import { sharedNetwork } from './client-address';

/**
 * What is known of the token request being handled. It grows while a flow finds out more, and ends in the
 * audit trail.
 */
export interface TokenAttempt {
  traceId: string | null;
  address: string | null;
  /** As the caller gave it: proven only if the request succeeds. */
  applicationKey: string | null;
  userName: string | null;
  /** Whom a verified token names, or whom the stores resolved. */
  subject: string | null;
}

/**
 * Control and format characters, line separators and halves of characters: they could forge lines or hide
 * text from whoever reads the trail.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/** The longest user name kept. People type passwords into the wrong field; what is this long is no name. */
const AUDITED_NAME_LENGTH = 64;
const DETAIL_LENGTH = 200;
const APPLICATION_KEY_LENGTH = 200;
/** `technician:<provider>:<name>` with a name of 256 is the longest. */
const SUBJECT_LENGTH = 320;
const current = new AsyncLocalStorage<TokenAttempt>();

/** The attempt that a request makes, from what its caller says. Nothing else of the body is looked at. */
export function describeAttempt(request: {
  traceId: string;
  address: string | null;
  applicationKeyHeader: unknown;
  body: unknown;
}): TokenAttempt {
  const body = typeof request.body === 'object' && request.body !== null ? request.body : {};
  const { applicationKey, user, userName } = body as Record<string, unknown>;
  return {
    traceId: request.traceId,
    address: request.address,
    applicationKey: auditedText(applicationKey ?? request.applicationKeyHeader, APPLICATION_KEY_LENGTH),
    userName: auditedUserName(user ?? userName),
    subject: null,
  };
}

/** A user name as the trail has it: folded as in the stores, so that all spellings of a name are found
 *  together. */
export function auditedUserName(value: unknown): string | null {
  const name = auditedText(value, AUDITED_NAME_LENGTH);
  return name && userNameKey(name);
}

/** Runs `work`, and everything it starts, as part of an attempt. */
export function withinAttempt<T>(attempt: TokenAttempt, work: () => T): T {
  return current.run(attempt, work);
}

/** The attempt being handled; outside of one (a test, a command) an empty one. */
export function currentAttempt(): TokenAttempt {
  return (
    current.getStore() ?? {
      traceId: null,
      address: null,
      applicationKey: null,
      userName: null,
      subject: null,
    }
  );
}

/** The network that the attempt comes from, as one party has it. `unknown` outside of an attempt. */
export function currentNetwork(): string {
  return sharedNetwork(currentAttempt().address);
}

/**
 * Adds what has been found out, for the audit trail of a request that fails later. Nulls and what is absent
 * change nothing.
 */
export function noteInAttempt(found: { applicationKey?: string | null; subject?: string | null }): void {
  const attempt = current.getStore();
  if (attempt === undefined) return;
  attempt.applicationKey =
    auditedText(found.applicationKey, APPLICATION_KEY_LENGTH) ?? attempt.applicationKey;
  attempt.subject = auditedText(found.subject, SUBJECT_LENGTH) ?? attempt.subject;
}

/**
 * What callers say, fit for the audit trail: bounded, without unprintable characters (shown as U+FFFD) and
 * without tokens. Null for anything but a text.
 * @param maxLength in code points
 */
export function auditedText(value: unknown, maxLength: number): string | null {
  if (typeof value !== 'string') return null;
  // Cut first: cleaning costs by length, and a caller chooses that.
  const cut =
    value.length <= maxLength
      ? value
      : Array.from(value.slice(0, maxLength * 2))
          .slice(0, maxLength)
          .join('');
  return hideTokens(cut.replace(UNPRINTABLE, '\ufffd'));
}

export function auditedDetail(value: string | undefined): string | null {
  return auditedText(value, DETAIL_LENGTH);
}
