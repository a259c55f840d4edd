import { Catch, HttpException, Inject, Injectable, Logger, Optional } from '@nestjs/common';
import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RouteTable } from '../application/route-table';
import { pathOf } from '../logging/log-safe';
import { httpProblem, PROBLEM_JSON, ProblemException, renderProblem } from './problem';
import type { Problem } from './problem';

/** Turns an error it knows into a problem; null for every other error. */
type ProblemMapper = (error: unknown) => Problem | null;

/**
 * Where libraries say how their errors are answered, e.g. the database's outages. An app's own errors belong
 * in its filter.
 */
@Injectable()
export class ProblemMappers {
  private readonly mappers: ProblemMapper[] = [];

  add(mapper: ProblemMapper): void {
    this.mappers.push(mapper);
  }

  /** The first answer among the mappers, in the order they were added. */
  toProblem(error: unknown): Problem | null {
    for (const mapper of this.mappers) {
      const problem = mapper(error);
      if (problem !== null) return problem;
    }
    return null;
  }
}

/**
 * Answers every error as `application/problem+json`. An app maps its domain errors by extending it,
 * overriding `toProblem` and providing it as APP_FILTER with `@Catch()`. Outside HTTP (consumers) it lets the
 * error pass.
 */
@Catch()
export class ProblemDetailsFilter implements ExceptionFilter {
  // Members, so that a subclass has a constructor of its own.
  @Optional()
  @Inject(ProblemMappers)
  private readonly mappers?: ProblemMappers;

  @Optional()
  @Inject(RouteTable)
  private readonly routes?: RouteTable;

  private readonly logger = new Logger('Problem');

  catch(error: unknown, host: ArgumentsHost): void {
    if (host.getType() !== 'http') throw error;
    const http = host.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const problem = this.problemOf(error, request);
    this.log(error, problem.status);
    this.send(problem, request, http.getResponse<FastifyReply>());
  }

  /** The problem for an error the app knows; null leaves it to the libraries and the defaults. */
  protected toProblem(_error: unknown): Problem | null {
    return null;
  }

  /** Writes the answer; override it where an error has another shape, e.g. on token endpoints. */
  protected send(problem: Problem, request: FastifyRequest, reply: FastifyReply): void {
    if (reply.sent) return;
    const body = renderProblem(problem, pathOf(request.url), request.id);
    void reply
      .code(problem.status)
      .headers(problem.headers ?? {})
      .header('content-type', PROBLEM_JSON)
      .send(body);
  }

  private problemOf(error: unknown, request: FastifyRequest): Problem {
    // Nest's own refusal of an address; ours say what else is wrong.
    if (request.is404 && error instanceof HttpException && !(error instanceof ProblemException))
      return this.unroutable(request);
    return this.toProblem(error) ?? this.mappers?.toProblem(error) ?? httpProblem(error) ?? { status: 500 };
  }

  /** 405 with Allow where other methods have a route at this address, else 404. */
  private unroutable(request: FastifyRequest): Problem {
    const allowed = this.routes?.methodsOf(request.url) ?? [];
    if (allowed.length === 0) return { status: 404, detail: 'There is nothing at this address.' };
    const detail = 'This method is not supported here.';
    return { status: 405, detail, headers: { Allow: allowed.join(', ') } };
  }

  private log(error: unknown, status: number): void {
    if (status === 500) this.logger.error(error);
    // We decided on this response: where in the code says nothing. Its cause is somebody else's error.
    else if (status > 500 && error instanceof ProblemException && error.cause === undefined)
      this.logger.warn(`${status}: ${error.message}`);
    else if (status > 500) this.logger.warn(error);
  }
}
