# Puts itself into a jail and becomes the parser: does what launcher.cjs does, in a tenth of its time. jail.ts starts this
# program where there is a Perl, with a description of the jail and the command line of the parser. Perl has one thread,
# so Landlock restricts the whole process. Nothing but the core of Perl is used, which Debian calls essential.
use strict;

my $jail = read_json($ARGV[0]);
my %number = %{$jail->{calls}};
my %option = (death_signal => 1, seccomp => 22, no_new_privileges => 38, ambient_capabilities => 47);
my ($seccomp_filter, $kill_signal, $thread_limit) = (2, 9, 6);
# O_PATH and O_CLOEXEC.
my $open_path = 012000000;
my ($close_range, $create_ruleset, $add_rule, $restrict_self) = (436, 444, 445, 446);

if ($jail->{isProbe}) {
    my $abi = syscall($create_ruleset, 0, 0, 1);
    # A filter at no address: EFAULT (14) from a kernel with filters, EINVAL from one without.
    my $has_filter = syscall($number{prctl}, $option{seccomp}, $seccomp_filter, 0, 0, 0) == -1 && $! == 14;
    printf '{"landlock":%d,"hasFilter":%s}', $abi < 0 ? 0 : $abi, $has_filter ? 'true' : 'false';
    exit;
}

# A parser in an endless loop would not notice that the service is gone.
check('prctl', syscall($number{prctl}, $option{death_signal}, $kill_signal, 0, 0, 0));
# A service that was killed before that call is not reported; its parser would live on and keep the socket of clamd.
exit 1 if getppid() != $jail->{parent};
check('prctl', syscall($number{prctl}, $option{no_new_privileges}, 1, 0, 0, 0));
limit_threads($jail->{freeThreads});
set_limit($_->[0], $_->[1], $_->[1]) for @{$jail->{limits}};
# Marks all descriptors as close-on-exec but the standard ones and those that the parser is to get.
syscall($close_range, 3, 0xffffffff, 4);
syscall($number{fcntl}, $_, 2, 0) for @{$jail->{descriptors}};
restrict_files($jail->{landlock}) if $jail->{landlock} >= $jail->{minLandlock};
restrict_calls() if $jail->{hasFilter};
# Ends the ambient capabilities, the only ones that an ordinary user would take along.
syscall($number{prctl}, $option{ambient_capabilities}, 4, 0, 0, 0) unless $jail->{keepsCapability};
exec { $jail->{command}[0] } @{$jail->{command}} or die "$jail->{command}[0] cannot be executed: $!\n";

# The argument is the version of Landlock that the kernel has.
sub restrict_files {
    my ($abi) = @_;
    my @masks;
    for my $handled (@{$jail->{handled}}) {
        my $mask = 0;
        $_->[0] <= $abi and $mask |= $_->[1] for @$handled;
        push @masks, $mask;
    }
    my $attributes = pack 'Q<3', @masks;
    my $size = $abi < 4 ? 8 : $abi < 6 ? 16 : 24;
    my $ruleset = check('landlock', syscall($create_ruleset, $attributes, $size, 0));
    for (@{$jail->{paths}}) {
        my ($path, $rights) = @$_;
        my $name = "$path\0";
        my $file = syscall($number{openat}, -100, $name, $open_path, 0);
        # The parser finds no more here than this program does.
        next if $file < 0;
        my $possible = $rights & $masks[0];
        my $rule = pack 'Q<l<', $possible, $file;
        # The kernel refuses rights on directories for a file (EINVAL).
        my $result = syscall($add_rule, $ruleset, 1, $rule, 0);
        if ($result < 0 && $! == 22) {
            $rule = pack 'Q<l<', $possible & $jail->{fileRights}, $file;
            $result = syscall($add_rule, $ruleset, 1, $rule, 0);
        }
        check("landlock $path", $result);
    }
    for my $port ($abi < 4 ? () : @{$jail->{ports}}) {
        my $rule = pack 'Q<2', 2, $port;
        check("landlock port $port", syscall($add_rule, $ruleset, 2, $rule, 0));
    }
    check('landlock', syscall($restrict_self, $ruleset, 0));
}

sub restrict_calls {
    my $instructions = pack 'H*', $jail->{filter};
    # exec keeps the process id.
    substr($instructions, $_, 4) = pack 'L<', $$ for @{$jail->{pidOffsets}};
    my $program = pack 'S<x6P', length($instructions) / 8, $instructions;
    check('seccomp', syscall($number{prctl}, $option{seccomp}, $seccomp_filter, $program, 0, 0));
}

sub set_limit {
    my ($resource, $limit, $most) = @_;
    my $limits = pack 'Q<2', $limit, $most;
    check("prlimit $resource", syscall($number{prlimit64}, 0, $resource, $limits, 0));
}

# The kernel counts the threads of a user over all programs, also over those of other containers, which are not visible
# here. So this tries by itself which limit leaves room for at least `count` further threads, and takes that limit.
sub limit_threads {
    my ($count) = @_;
    my $limits = "\0" x 16;
    check('prlimit', syscall($number{prlimit64}, 0, $thread_limit, 0, $limits));
    my (undef, $most) = unpack 'Q<2', $limits;
    for (my $limit = 2 * $count; $limit < $most; $limit *= 2) {
        set_limit($thread_limit, $limit - $count, $most);
        my $child = fork;
        syscall($number{exit_group}, 0) if defined $child && $child == 0;
        next unless defined $child;
        waitpid $child, 0;
        return set_limit($thread_limit, $limit, $limit);
    }
    set_limit($thread_limit, $most, $most);
}

sub check {
    my ($name, $result) = @_;
    return $result if $result >= 0;
    die "The jail cannot be entered: $name failed with error " . ($! + 0) . "\n";
}

# Reads the JSON of jail.ts. The modules for JSON are not part of the core that is installed everywhere.
sub read_json {
    my ($text) = @_;
    my $value = read_value(\$text);
    $text =~ /\G\s*\z/gc or die "The description of the jail cannot be read\n";
    return $value;
}

sub read_value {
    my ($text) = @_;
    $$text =~ /\G\s*/gc;
    if ($$text =~ /\G\{/gc) {
        my %object;
        until ($$text =~ /\G\s*\}/gc) {
            my $name = read_value($text);
            $$text =~ /\G\s*:/gc or die "The description of the jail cannot be read\n";
            $object{$name} = read_value($text);
            $$text =~ /\G\s*,/gc;
        }
        return \%object;
    }
    if ($$text =~ /\G\[/gc) {
        my @list;
        until ($$text =~ /\G\s*\]/gc) {
            push @list, read_value($text);
            $$text =~ /\G\s*,/gc;
        }
        return \@list;
    }
    return $1 + 0 if $$text =~ /\G(-?\d+)/gc;
    return 1 if $$text =~ /\Gtrue/gc;
    return 0 if $$text =~ /\Gfalse/gc;
    $$text =~ /\G"((?:[^"\\]|\\.)*)"/gcs or die "The description of the jail cannot be read\n";
    my $string = $1;
    my %escaped = (n => "\n", t => "\t", r => "\r", b => "\b", f => "\f");
    $string =~ s{\\(?:u(....)|(.))}{defined $1 ? to_bytes(hex $1) : $escaped{$2} // $2}ges;
    return $string;
}

# JSON.stringify escapes control characters and lone surrogates only, all others are UTF-8 already.
sub to_bytes {
    my $bytes = chr $_[0];
    utf8::encode($bytes);
    return $bytes;
}
