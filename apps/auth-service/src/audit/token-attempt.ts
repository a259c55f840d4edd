import { AsyncLocalStorage } from 'node:async_hooks';
import { hideTokens } from '@platform/service-defaults';
import { userNameKey } from '../identity/identity';
import { sharedNetwork } from './client-address';

/**
 * The known facts about the current token request. The flow adds to them, and they are written to the audit
 * trail.
 */
export interface TokenAttempt {
  traceId: string | null;
  address: string | null;
  /** The application key as sent. It is verified only if the request succeeds. */
  applicationKey: string | null;
  userName: string | null;
  /** The subject of a verified token, or of the user that the stores resolved. */
  subject: string | null;
}

/**
 * Control and format characters, line separators and lone surrogates. They could forge lines or hide text in
 * the audit trail.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/**
 * Maximum stored length of a user name, in code points; the rest is cut off. Longer input may be a password
 * typed into the wrong field, so no more of it is stored.
 */
const AUDITED_NAME_LENGTH = 64;
const DETAIL_LENGTH = 200;
const APPLICATION_KEY_LENGTH = 200;
/**
 * Maximum length of a subject. The longest is `technician:<provider>:<name>` with a name of 256 characters.
 */
const SUBJECT_LENGTH = 320;
const current = new AsyncLocalStorage<TokenAttempt>();

/** Creates the attempt of a request. It reads only the application key and the user name from the body. */
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

/**
 * Returns a user name for the audit trail, folded as in the stores, so that a search finds all its spellings.
 */
export function auditedUserName(value: unknown): string | null {
  const name = auditedText(value, AUDITED_NAME_LENGTH);
  return name && userNameKey(name);
}

/** Runs `work`, and all asynchronous work that it starts, with `attempt` as the current attempt. */
export function withinAttempt<T>(attempt: TokenAttempt, work: () => T): T {
  return current.run(attempt, work);
}

/** Returns the current attempt; outside of a token request, e.g. in a command, an empty one. */
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

/** Returns the `sharedNetwork` of the current attempt; `unknown` outside of a token request. */
export function currentNetwork(): string {
  return sharedNetwork(currentAttempt().address);
}

/**
 * Adds facts to the current attempt, for the audit row if the request fails later. Ignores absent and null
 * values.
 */
export function noteInAttempt(found: { applicationKey?: string | null; subject?: string | null }): void {
  const attempt = current.getStore();
  if (attempt === undefined) return;
  attempt.applicationKey =
    auditedText(found.applicationKey, APPLICATION_KEY_LENGTH) ?? attempt.applicationKey;
  attempt.subject = auditedText(found.subject, SUBJECT_LENGTH) ?? attempt.subject;
}

/**
 * Makes caller input safe for the audit trail: truncates it, replaces unprintable characters by U+FFFD and
 * redacts tokens. Returns null for anything but a string.
 * @param maxLength in code points
 */
export function auditedText(value: unknown, maxLength: number): string | null {
  if (typeof value !== 'string') return null;
  // Truncated first, because the cost of the replacements grows with the length, which the caller chooses.
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
