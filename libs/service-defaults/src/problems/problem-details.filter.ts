import { Catch, Inject } from '@nestjs/common';
import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import type { Problem } from './problem';
import { ProblemMappers } from './problem-mappers';

/** Answers every error as `application/problem+json`. An app maps its domain errors by extending it and overriding `toProblem`. */
@Catch()
export class ProblemDetailsFilter implements ExceptionFilter {
  @Inject(ProblemMappers)
  private readonly mappers!: ProblemMappers;

  catch(error: unknown, host: ArgumentsHost): void {
    void host;
    throw new Error(`not yet: ${String(this.toProblem(error))}`);
  }

  /** The problem for an error the app knows; null leaves it to the defaults. */
  protected toProblem(error: unknown): Problem | null {
    return this.mappers.toProblem(error);
  }
}
