import { Global, Module } from '@nestjs/common';
import { RefusalAudit } from './refusal-audit.service';
import { TokenAttempts } from './token-attempts.service';

/** Who asked for what, and what came of it. Global: every flow takes part. */
@Global()
@Module({ providers: [RefusalAudit, TokenAttempts], exports: [RefusalAudit, TokenAttempts] })
export class AuditModule {}
