//! `examples/cluster/submit` on a Slurm of one controller and two nodes, all on this machine and without root's rights.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use headstart_testing::tools;

use crate::process::{self, ask_for, output, wait_for};
use crate::search::{PARTS, SUBJECT, Search};

const NODES: [&str; 2] = ["node1", "node2"];

#[test]
#[ignore = "nightly: the same search as under Dask"]
fn a_lost_node_s_part_goes_on_from_its_log() {
    if !tools::folder().join("bin/slurmctld").exists() {
        return tools::skip("slurm", "no Slurm; scripts/tools sets it up");
    }
    let search = Search::new();
    let mut slurm = Slurm::start();
    output(
        slurm
            .command(Search::example("submit"))
            .arg(search.folder())
            .args(SUBJECT)
            .env("SBATCH_ARRAY_INX", format!("1-{PARTS}"))
            .current_dir(search.folder()),
    );

    let lost = search.in_the_middle_of(1);
    let node = process::variable(lost, "SLURMD_NODENAME").expect("a node");
    let array = process::variable(lost, "SLURM_ARRAY_JOB_ID").expect("an array");
    slurm.lose(&node, lost);
    let kept = search.kept(1);

    // The controller finds out by itself when SlurmdTimeout is over. Here an order says so, as an administrator would.
    let part = format!("{array}_1");
    slurm.control(&["update", &format!("nodename={node}"), "state=down", "reason=lost"]);
    ask_for("the part's place in the queue", || {
        let shown = slurm.control(&["show", "job", &part]);
        shown.contains("JobState=PENDING").then_some(())
    });
    // It would wait two minutes.
    slurm.control(&["update", &format!("jobid={part}"), "starttime=now"]);
    ask_for("the end of all jobs", || {
        let queue = output(slurm.command("squeue").arg("--noheader"));
        queue.trim().is_empty().then_some(())
    });
    let shown = slurm.control(&["show", "job", &part]);
    assert!(
        shown.contains("Restarts=1") && shown.contains("JobState=COMPLETED"),
        "{shown}"
    );
    search.check(1, &kept);
}

/// The daemons, which end with it.
struct Slurm {
    folder: tempfile::TempDir,
    munge: Child,
    controller: Child,
    nodes: Vec<(&'static str, Child)>,
}

impl Slurm {
    /// Starts all, and waits until the nodes are there.
    fn start() -> Slurm {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        // MUNGE wants a socket that all can reach, and a key that no other user can read.
        fs::set_permissions(at, fs::Permissions::from_mode(0o755)).expect("permissions");
        fs::create_dir(at.join("state")).expect("a folder");
        write_key(&at.join("key"));
        fs::write(at.join("slurm.conf"), configuration(at)).expect("a configuration");

        let start = |program: &str, arguments: &[String]| {
            let log = fs::File::create(at.join(format!("{program}{}.out", arguments.len()))).expect("a file");
            Command::new(bin().join(program))
                .args(arguments)
                .stdout(log.try_clone().expect("a file"))
                .stderr(log)
                .env("PATH", Search::path())
                // As the search of one process is made.
                .env("HEADSTART_PTXAS", "")
                .spawn()
                .unwrap_or_else(|error| panic!("{program}: {error}"))
        };
        let file = |option: &str, name: &str| format!("--{option}={}", at.join(name).display());
        let munge = start(
            "munged",
            &[
                "--foreground".to_owned(),
                file("key-file", "key"),
                file("socket", "munge.socket"),
                file("pid-file", "munged.pid"),
                file("log-file", "munged.log"),
                file("seed-file", "munged.seed"),
            ],
        );
        wait_for("MUNGE's socket", || {
            at.join("munge.socket").exists().then_some(())
        });
        let configured = ["-D".to_owned(), "-f".to_owned(), path(&at.join("slurm.conf"))];
        let controller = start("slurmctld", &configured);
        let nodes = NODES.map(|node| {
            let own = ["-N".to_owned(), node.to_owned()];
            let arguments: Vec<String> = configured.iter().chain(&own).cloned().collect();
            (node, start("slurmd", &arguments))
        });
        let slurm = Slurm {
            munge,
            controller,
            nodes: nodes.into(),
            folder,
        };
        ask_for("two idle nodes", || {
            let command = &mut slurm.command("sinfo");
            let shown = command.args(["--noheader", "--format=%D %T"]).output().ok()?;
            (shown.stdout.trim_ascii() == b"2 idle").then_some(())
        });
        slurm
    }

    /// A program that finds this Slurm.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(bin().join(program));
        command
            .env("PATH", Search::path())
            // As the search of one process is made.
            .env("HEADSTART_PTXAS", "")
            .env("SLURM_CONF", self.folder.path().join("slurm.conf"));
        command
    }

    fn control(&self, arguments: &[&str]) -> String {
        output(self.command("scontrol").args(arguments))
    }

    /// A node without power: its daemon, the one that watches over the job, and the job are gone.
    fn lose(&mut self, node: &str, job: u32) {
        let step = process::parent(job).expect("the job's step");
        assert!(process::name(step).starts_with("slurmstepd"));
        let own = self.nodes.iter_mut().find(|(name, _)| *name == node);
        let (_, daemon) = own.expect("a node");
        daemon.kill().expect("killed");
        daemon.wait().expect("a status");
        process::kill(step);
        process::kill(job);
        wait_for("the job's end", || process::has_ended(job).then_some(()));
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        if thread::panicking() {
            for file in fs::read_dir(self.folder.path()).into_iter().flatten().flatten() {
                if let (Some("log" | "out"), Ok(text)) = (
                    file.path().extension().and_then(|extension| extension.to_str()),
                    fs::read_to_string(file.path()),
                ) {
                    eprintln!("== {}\n{text}", file.path().display());
                }
            }
        }
        // After a failure there may be jobs, which the controller ends.
        for state in ["PENDING", "RUNNING"] {
            let _ = self.command("scancel").arg(format!("--state={state}")).output();
        }
        for _ in 0..50 {
            let queue = self.command("squeue").arg("--noheader").output();
            if queue.is_ok_and(|queue| queue.stdout.is_empty()) {
                break;
            }
            thread::sleep(Duration::from_millis(200));
        }
        let daemons = self.nodes.iter_mut().map(|(_, node)| node);
        for daemon in daemons.chain([&mut self.controller, &mut self.munge]) {
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let _ = daemon.wait();
        }
    }
}

fn bin() -> PathBuf {
    tools::folder().join("bin")
}

fn path(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}

/// A secret of 1024 bits.
fn write_key(file: &Path) {
    use std::io::{Read, Write};
    let mut key = [0; 128];
    let mut random = fs::File::open("/dev/urandom").expect("random bytes");
    random.read_exact(&mut key).expect("random bytes");
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .expect("a file");
    file.write_all(&key).expect("written");
}

/// One controller and two nodes on this machine, of the user who runs the test.
fn configuration(at: &Path) -> String {
    let user = output(Command::new("id").arg("-un"));
    let user = user.trim();
    let plugins = tools::folder().join("slurm/root/usr/lib/x86_64-linux-gnu/slurm-wlm");
    let plugins = plugins
        .canonicalize()
        .expect("Slurm's plugins")
        .display()
        .to_string();
    // Held all at once, so that they differ.
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let [controller, first, second] =
        listeners.map(|listener| listener.local_addr().expect("an address").port());
    let at = at.display();
    let [one, two] = NODES;
    format!(
        "ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={at}/munge.socket
CredType=cred/munge
PluginDir={plugins}
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/%n
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/%n.pid
SlurmctldLogFile={at}/slurmctld.log
SlurmdLogFile={at}/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/linear
SchedulerType=sched/builtin
SchedulerParameters=sched_min_interval=100000
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
KillWait=1
NodeName={one} NodeHostname=localhost NodeAddr=127.0.0.1 Port={first} CPUs=1
NodeName={two} NodeHostname=localhost NodeAddr=127.0.0.1 Port={second} CPUs=1
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"
    )
}
