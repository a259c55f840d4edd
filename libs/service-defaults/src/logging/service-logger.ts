import type { LoggerService } from '@nestjs/common';
import { SYSTEM_CLOCK } from '@platform/time';
import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';
import { ConfigError } from '../config/config';
import { currentTrace } from '../tracing/trace-context';
import { hideTokens, logSafeError } from './log-safe';

/** Members that are redacted in every object, at the top level and one level below. */
const SECRET_MEMBERS = [
  'authorization',
  'cookie',
  'password',
  'secret',
  'sharedSecret',
  'authenticationCode',
  'token',
  'accessToken',
  'refreshToken',
  'bearerTokenOverride',
  'settingValue',
  'body',
  'clientSecret',
  'client_secret',
  'id_token',
  'code_verifier',
  'codeVerifier',
  'parameters',
];

/** Log levels, under pino's names. */
type Level = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';

/** Level of a request's log line: `debug` for polled routes. */
export type RequestLevel = Extract<Level, 'info' | 'debug'>;

/** A buffered sink for log lines, so that a request does not wait for the terminal or the disk. */
export interface LogSink extends DestinationStream {
  flushSync(): void;
}

/**
 * Writes structured logs, one JSON object per line, for Nest and for requests. Removes secrets and unsafe
 * members of errors.
 */
export class ServiceLogger implements LoggerService {
  private readonly lines: Logger;
  private readonly texts: Logger;
  private readonly requests: Logger;

  constructor(
    options: { name: string; level: string },
    private readonly sink: LogSink = bufferedStandardOutput(),
  ) {
    const shape = {
      base: { service: options.name },
      level: options.level,
      timestamp: timeMember(),
      formatters: { level: (label: string) => ({ level: label }) },
      serializers: { err: (error: unknown) => logSafeError(error) },
    };
    const redact = { paths: SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' };
    this.lines = pino({ ...shape, redact, mixin: traceMember }, sink);
    // Text lines have no members to redact. They are a hot path: consumers and the relay write one per
    // message.
    this.texts = pino({ ...shape, mixin: traceMember }, sink);
    // Request lines are built from safe members only, so redaction would be wasted time.
    this.requests = pino(shape, sink);
  }

  log(message: unknown, ...rest: unknown[]): void {
    this.write('info', message, rest);
  }

  error(message: unknown, ...rest: unknown[]): void {
    this.write('error', message, rest);
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('trace', message, rest);
  }

  fatal(message: unknown, ...rest: unknown[]): void {
    this.write('fatal', message, rest);
    this.flush();
  }

  /** Whether request lines of this level are written. */
  logsRequests(level: RequestLevel): boolean {
    return this.requests.isLevelEnabled(level);
  }

  /** Writes one line for a completed request. `line` must hold safe members only. */
  request(line: object, level: RequestLevel): void {
    this.requests[level](line, 'request');
  }

  /** Writes out the buffer; call it last before the process ends. */
  flush(): void {
    this.sink.flushSync();
  }

  /**
   * Nest passes the context as the last string and, for errors, a stack before it. An Error may be at any
   * position.
   */
  private write(level: Level, message: unknown, rest: readonly unknown[]): void {
    if (!this.lines.isLevelEnabled(level)) return;
    const [context, ...others] = rest;
    if (typeof message === 'string' && others.length === 0 && isContext(context)) {
      this.texts[level]({ context }, hideTokens(message));
    } else this.writeMembers(level, message, rest);
    if (level === 'error') this.flush();
  }

  private writeMembers(level: Level, message: unknown, rest: readonly unknown[]): void {
    const last = rest.at(-1);
    const context = typeof last === 'string' && !isStack(last) ? { context: last } : {};
    const err = [message, ...rest].find((each) => each instanceof Error);
    // The operator needs the list of variables without a stack trace.
    if (err instanceof ConfigError)
      return this.lines[level]({ ...context, problems: err.problems }, 'invalid configuration');
    const members = rest.find(
      (each) => typeof each === 'object' && each !== null && !(each instanceof Error),
    );
    const stack = rest.find((each) => typeof each === 'string' && isStack(each));
    this.lines[level](
      {
        ...context,
        ...(isRecord(message) ? message : {}),
        ...(members as object | undefined),
        ...(err === undefined ? {} : { err }),
        ...(err === undefined && stack !== undefined ? { stack } : {}),
      },
      textOf(message),
    );
  }
}

/**
 * Returns a function for a line's time in UTC. Lines of the same millisecond share its text, because
 * formatting a date costs more than the rest of a line.
 */
function timeMember(): () => string {
  let textAtMs = NaN;
  let text = '';
  return () => {
    const now = SYSTEM_CLOCK.now();
    if (now.getTime() !== textAtMs) {
      textAtMs = now.getTime();
      text = `,"time":"${now.toISOString()}"`;
    }
    return text;
  };
}

/** Returns the trace id of a line, and its span id if this process records spans. */
function traceMember(): object {
  const trace = currentTrace();
  if (trace === undefined) return {};
  return trace.span === undefined
    ? { traceId: trace.traceId }
    : { traceId: trace.traceId, spanId: trace.spanId };
}

/** Whether a value is the context that Nest passes after a text: a string or nothing. */
function isContext(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && !isStack(value));
}

function isStack(text: string): boolean {
  return text.includes('\n    at ');
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Error);
}

function textOf(message: unknown): string | undefined {
  if (typeof message === 'string') return hideTokens(message);
  if (message instanceof Error) return hideTokens(message.message);
  return isRecord(message) ? undefined : String(message);
}

let standardOutput: LogSink | undefined;

/** Returns the process's only sink: two would interleave their buffers. */
function bufferedStandardOutput(): LogSink {
  return (standardOutput ??= reportingFlushErrors(
    convertingToBytes(
      pino.destination({
        fd: 1,
        sync: false,
        contentMode: 'buffer',
        minLength: 8_192,
        maxWrite: 16_384,
        periodicFlush: 500,
      }),
    ),
  ));
}

/**
 * Passes each line to the sink as bytes. For a line given as a string, sonic-boom joins its whole buffer and
 * recounts its bytes, which is several KB per line.
 */
function convertingToBytes(sink: Destination): Destination {
  const write = sink.write.bind(sink) as (bytes: string | Buffer) => boolean;
  sink.write = (line) => write(Buffer.from(line));
  return sink;
}

type Destination = ReturnType<typeof pino.destination>;

/**
 * Lets the service keep working when the log's reader has gone. pino handles an error event, but `flushSync`
 * throws instead, so its error is emitted as an event.
 */
function reportingFlushErrors(sink: Destination): LogSink {
  const flushSync = sink.flushSync.bind(sink);
  sink.flushSync = () => {
    try {
      flushSync();
    } catch (error) {
      sink.emit('error', error);
    }
  };
  return sink;
}
